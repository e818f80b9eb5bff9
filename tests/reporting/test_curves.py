"""Charts of a run: their metrics for one board, several boards, and single-player games."""

import math

from alphagat.monitoring.catalogue import PERCENT
from alphagat.reporting.curves import Entry, charts_of, draw, to_html, to_legend
from alphagat.runs.metrics import Result


def values_of(lines, *boards):
    return {
        chart.title: {label: [result.value for _, result in points] for label, points in chart.curves.items()}
        for chart in charts_of(lines, boards)
    }


def test_one_board_shows_all_its_metrics():
    board = "hex:5"
    results = [Result("elo", board, 10.0), Result("win_rate", board, 0.5, 0.4, 0.6, "mcts:100")]
    lines = [
        {"iteration": 1, "board": board, "frames": 8.0, "train/policy_loss": None, "selfplay/target_entropy": 1.0},
        {"iteration": 2, "board": board, "frames": 16.0, "train/policy_loss": 2.5, "results": results},
    ]
    assert values_of(lines, board) == {
        "Elo": {"": [10.0]},
        "Score against": {"mcts:100": [0.5]},
        "Policy loss": {"": [2.5]},
        "Entropy of the policy": {"search": [1.0]},
    }
    (loss,) = [chart for chart in charts_of(lines, [board]) if chart.title == "Policy loss"]
    figure = to_html(draw(loss, lines))
    assert "<b>2.5</b>" in figure
    assert figure.count("<svg") == 2  # over iterations and frames; the hours are unknown
    assert figure.count("<circle") == 2  # the iteration without a loss is left out


def test_boards_share_charts_with_one_curve_each():
    boards = "hex:1", "hex:11"
    lines = [
        {"iteration": number, "board": board, "train/policy_loss": 0.5, "train/policy_entropy": 0.25}
        for number, board in enumerate(boards, 1)
    ]
    lines[1]["results"] = [
        result
        for board in boards
        for result in (Result("win_rate", board, 0.75, opponent="a"), Result("elo", board, 9))
    ]
    assert values_of(lines, *boards) == {
        "Elo": {"hex:1": [9], "hex:11": [9]},
        "Score against, hex:1": {"a": [0.75]},
        "Score against, hex:11": {"a": [0.75]},
        "Policy loss": {"hex:1": [0.5], "hex:11": [0.5]},
        "Entropy of the policy, hex:1": {"network": [0.25]},
        "Entropy of the policy, hex:11": {"network": [0.25]},
    }


def test_learning_stands_under_the_board_that_was_learned():
    first = {"iteration": 1, "board": "hex:1", "train/policy_loss": None, "selfplay/game_length": 1.0}
    second = {"iteration": 2, "board": "hex:2", "train/policy_loss": 0.5, "selfplay/game_length": 2.0}
    assert values_of([first, second | {"trained_board": "hex:1"}], "hex:1", "hex:2") == {
        "Policy loss": {"hex:1": [0.5]},
        "Plies per game": {"hex:1": [1.0], "hex:2": [2.0]},
    }


def test_single_player_games_show_points():
    lines = [{"iteration": 1, "board": "2048", "results": [Result("score", "2048", 900.0, 800.0, 1000.0)]}]
    assert values_of(lines, "2048") == {"Points per game": {"": [900.0]}}


def test_percentages_are_written_as_in_the_results():
    for share in (0.0, 0.456, 1.0):
        lines = [{"iteration": 1, "board": "hex:5", "results": [Result("win_rate", "hex:5", share, opponent="a")]}]
        (chart,) = charts_of(lines, ["hex:5"])
        (entry,) = draw(chart, lines).legend
        assert entry.value == PERCENT(share)


def test_the_legend_shows_the_last_value():
    lines = [{"iteration": number, "board": "hex:5", "train/policy_loss": 4.0 / number} for number in (1, 2, 4)]
    (chart,) = charts_of(lines, ["hex:5"])
    assert [entry.value for entry in draw(chart, lines).legend] == ["1"]


def test_results_that_are_not_finite_are_left_out():
    measured = {"holdout/policy_accuracy": 0.5, "holdout/value_sign": math.nan}
    lines = [
        {"iteration": 1, "board": "hex:5", "results": [Result(name, "hex:5", measured[name]) for name in measured]}
    ]
    assert values_of(lines, "hex:5") == {"Recorded games that were held out": {"moves predicted": [0.5]}}


def test_labels_are_not_markup():
    assert ">&lt;a&gt; <b>1</b></span>" in to_legend([Entry("<a>", "1", "#000", "solid")], "legend")
