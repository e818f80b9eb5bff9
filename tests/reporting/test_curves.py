"""Charts of a run: which metrics they show, with one board, several, and one player."""

from alphagat.reporting.curves import charts_of, draw


def metrics_of(lines, *boards):
    return {chart.title: chart.metrics for chart in charts_of(lines, boards)}


def test_one_board_has_its_metrics_by_their_names():
    lines = [
        {"iteration": 1, "frames": 8.0, "train/policy_loss": None, "selfplay/target_entropy": 1.0},
        {"iteration": 2, "frames": 16.0, "train/policy_loss": 2.5, "eval/elo": 10.0, "eval/vs_mcts:100/win_rate": 0.5},
    ]
    assert metrics_of(lines, "hex:5") == {
        "Elo": {"": "eval/elo"},
        "Score against": {"mcts:100": "eval/vs_mcts:100/win_rate"},
        "Policy loss": {"": "train/policy_loss"},
        "Entropy of the policy": {"search": "selfplay/target_entropy"},
    }
    (loss,) = [chart for chart in charts_of(lines, ["hex:5"]) if chart.title == "Policy loss"]
    figure = draw(loss, lines)
    assert "<b>2.5</b>" in figure
    assert figure.count("<svg") == 2  # over iterations and frames; nothing is known of hours
    assert figure.count("<circle") == 2  # the iteration without a loss is left out


def test_boards_share_a_chart_where_each_has_one_curve():
    names = ("train/{}/policy_loss", "train/{}/policy_entropy", "eval/{}/vs_random/win_rate", "eval/{}/elo")
    lines = [{"iteration": 1, **{name.format(board): 0.5 for name in names for board in ("hex:1", "hex:11")}}]
    assert metrics_of(lines, "hex:1", "hex:11") == {
        "Elo": {"hex:1": "eval/hex:1/elo", "hex:11": "eval/hex:11/elo"},
        "Score against, hex:1": {"random": "eval/hex:1/vs_random/win_rate"},
        "Score against, hex:11": {"random": "eval/hex:11/vs_random/win_rate"},
        "Policy loss": {"hex:1": "train/hex:1/policy_loss", "hex:11": "train/hex:11/policy_loss"},
        "Entropy of the policy, hex:1": {"network": "train/hex:1/policy_entropy"},
        "Entropy of the policy, hex:11": {"network": "train/hex:11/policy_entropy"},
    }


def test_one_player_has_points():
    lines = [{"iteration": 1, "eval/score": 900.0, "eval/score_low": 800.0, "eval/score_high": 1000.0}]
    assert metrics_of(lines, "2048") == {"Points per game": {"": "eval/score"}}
