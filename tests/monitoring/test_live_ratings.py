"""Live ratings: which matches each metrics line contributes, and equality after a resume."""

from typing import Any

import numpy as np
import pytest

from alphagat.config import Config
from alphagat.evaluation.ratings import PairResult, rate
from alphagat.evaluation.statistics import elo_difference
from alphagat.monitoring import rating_curve
from alphagat.monitoring.live_ratings import NUM_RESAMPLES, LiveRatings, rate_evaluations
from alphagat.runs.metrics import ELO, NUM_GAMES, PREVIOUS_ITERATION, WIN_RATE, MetricsWriter, Result

BOARD = Config().boards[0]


def win_rates(board: str = BOARD, /, **scores: float) -> list[Result]:
    """Returns results against opponents; `mcts` is short for `mcts:100`."""
    return [Result(WIN_RATE, board, score, opponent=name.replace("mcts", "mcts:100")) for name, score in scores.items()]


def line(iteration: int, num_games: int = 100, **scores: float) -> dict[str, Any]:
    """Returns the line of an iteration."""
    place = {"iteration": iteration, "frames": 64.0 * iteration, "hours": iteration / 10}
    return place | {NUM_GAMES: num_games, "results": win_rates(**scores)}


LINES = [
    line(4, random=0.8, mcts=0.3, previous=0.75),
    line(8, random=0.95, mcts=0.4, previous=0.6),
    line(12, 40, random=1.0, mcts=0.55, previous=0.625),
]


@pytest.fixture(autouse=True)
def drawn(monkeypatch) -> list[dict]:
    """Records the drawn curves."""
    found = []
    monkeypatch.setattr(rating_curve, "draw", lambda folder, curves, title: found.append(curves))
    return found


def test_a_lost_line_changes_no_opponent():
    """Without its line, the network of iteration 8 is known only from the matches of later ones."""
    lines = [each | {PREVIOUS_ITERATION: 4 * number} for number, each in enumerate(LINES)]
    found = rate_evaluations([lines[0], lines[2]], BOARD)
    assert [each.iteration for each in found] == [None, None, 0, 4, 8, 12]
    assert [each.frames for each in found] == [None, None, 0, 256, None, 768]
    assert rate_evaluations(lines, BOARD) == rate_evaluations(LINES, BOARD)


def test_each_line_gives_the_matches_of_its_network():
    pair_results = []
    for number, each in enumerate(LINES):
        player, before = f"iteration {each['iteration']}", f"iteration {4 * number}"
        scores = {result.opponent: result.value for result in each["results"]}
        for name, opponent in (("random", "random"), ("mcts:100", "mcts:100"), ("previous", before)):
            score, games = scores[name], each[NUM_GAMES]
            pair_results.append(PairResult.of_score(player, opponent, score, games))
    expected = rate(pair_results, "random", NUM_RESAMPLES)
    found = rate_evaluations(LINES, BOARD)
    assert {each.name: (each.elo, each.low, each.high) for each in found} == {
        name: (rating.elo, rating.low, rating.high) for name, rating in expected.items()
    }
    assert [each.iteration for each in found] == [None, None, 0, 4, 8, 12]
    assert [each.frames for each in found] == [None, None, 0, 256, 512, 768]


def test_one_opponent_equals_the_closed_form(tmp_path):
    (elo,) = LiveRatings(tmp_path, Config()).add(line(4, random=0.8))
    assert elo.value == pytest.approx(elo_difference(80.5 / 101), abs=1e-6)
    assert elo.low is not None
    assert elo.high is not None
    assert elo.low < elo.value < elo.high


def test_later_evaluations_update_earlier_ratings(tmp_path, drawn):
    ratings = LiveRatings(tmp_path, Config())
    (first,), _, (third,) = [ratings.add(each) for each in LINES]
    last = {each.iteration: each for each in drawn[-1]["hex:5"]}
    assert len(drawn) == 3
    assert last[12].elo == third.value
    assert last[4].elo != first.value


@pytest.mark.parametrize("done", [1, 2])
def test_resume_gives_the_same_ratings(tmp_path, done):
    whole = LiveRatings(tmp_path, Config())
    expected = [whole.add(each) for each in LINES]
    with MetricsWriter(tmp_path) as writer:
        for each in LINES[:done]:
            writer.write(each["iteration"] - 1, {"frames": 1.0})
            writer.write(each["iteration"], each)
        writer.write(13, {"frames": 1.0})
    resumed = LiveRatings(tmp_path, Config())
    assert [resumed.add(each) for each in LINES[done:]] == expected[done:]


def test_a_repeated_evaluation_replaces_the_first(tmp_path, drawn):
    """A run that was killed before it saved a late evaluation repeats it; the line has the frames and hours."""
    with MetricsWriter(tmp_path) as writer:
        for each in LINES:
            writer.write(each["iteration"], each)
    repeated = {"iteration": 12, NUM_GAMES: 40, "results": LINES[-1]["results"]}
    whole = LiveRatings(tmp_path / "none", Config())
    expected = [whole.add(each) for each in LINES][-1]
    assert LiveRatings(tmp_path, Config()).add(repeated) == expected
    assert (drawn[-1][BOARD][-1].frames, drawn[-1][BOARD][-1].hours) == (768, 1.2)


def test_boards_are_rated_separately(tmp_path, drawn):
    ratings = LiveRatings(tmp_path, Config(boards=("hex:3", "hex:4")))
    results = win_rates("hex:3", random=0.5) + win_rates("hex:4", random=0.75)
    one, other = ratings.add(line(4) | {"results": results})
    assert [(each.name, each.board) for each in (one, other)] == [(ELO, "hex:3"), (ELO, "hex:4")]
    assert one.value == pytest.approx(0, abs=1e-6)
    assert other.value == pytest.approx(elo_difference(75.5 / 101), abs=1e-6)
    assert list(drawn[0]) == ["hex:3", "hex:4"]


@pytest.mark.parametrize(
    ("scores", "anchor"),
    [
        ({"random": 0.9, "previous": 0.5}, "random"),
        ({"previous": 0.7, "mcts": 0.5}, "iteration 0"),
        ({"mcts": 0.5}, "mcts:100"),
    ],
)
def test_choice_of_the_anchor(scores, anchor):
    found = {each.name: each for each in rate_evaluations([line(4, **scores)], BOARD)}
    assert (found[anchor].elo, found[anchor].low, found[anchor].high) == (0, 0, 0)


def test_a_network_unconnected_to_the_anchor_has_no_rating(tmp_path):
    """Opponents may change when a run is resumed."""
    ratings = LiveRatings(tmp_path, Config())
    assert ratings.add(line(4, random=0.5))
    assert ratings.add(line(8, mcts=0.5)) == []
    assert ratings.add(line(12, mcts=0.5, random=0.6))
    assert {each.iteration for each in rate_evaluations([line(4, random=0.5), line(8, mcts=0.5)], BOARD)} == {None, 4}


def test_a_single_player_game_has_no_rating(tmp_path, drawn):
    results = [Result("score", "2048", 1000.0), Result("score_ratio", "2048", 2.0, opponent="random")]
    assert LiveRatings(tmp_path, Config(boards=("2048",))).add(line(4) | {"results": results}) == []
    assert drawn == []


def test_ratings_of_a_long_run_are_finite():
    """Ratings stay finite for contradictory matches and networks thousands of Elo apart."""
    lines = [line(4 * n, random=1.0, mcts=0.99, previous=0.9) for n in range(1, 101)]
    found = rate_evaluations(lines, BOARD)
    assert len(found) == 103
    assert np.isfinite([(each.elo, each.low, each.high) for each in found]).all()
    elo = [each.elo for each in found if each.iteration is not None]
    assert elo == sorted(elo)
