"""Perfect play in Connect Four: always a best move, any of them, and repeatable by its seed."""

import sys

import pytest

from alphagat.errors import UserError
from alphagat.evaluation import connect_four
from alphagat.evaluation.perfect import SolverEngine
from alphagat.games import make_game
from tests.evaluation.host_games import begin, play_against_random, play_game, position_after

GAME = make_game("connect_four")


@pytest.fixture(scope="module")
def engine():
    pytest.importorskip("bitbully", reason="bitbully is not installed")
    return SolverEngine(GAME, seed=0)


def test_the_first_player_wins_at_last(engine):
    """Allis (1988): in the centre, and, against the longest defence, with the last but one disc."""
    assert engine.choose(begin(GAME)) == 3
    last = play_game([engine.choose, engine.choose], GAME)[-1]
    assert len(last.moves) == 41
    assert last.state.rewards.tolist() == [1, -1]


def test_random_play_loses(engine):
    for seed in range(4):
        assert play_against_random(engine, GAME, seed)[-1].state.rewards[seed % 2] == 1


def test_the_best_moves_are_equally_likely_and_a_seed_repeats_them(engine):
    position = position_after("connect_four", *"444444")
    choices = [
        [player.choose(position) for _ in range(400)] for player in (SolverEngine(GAME, 1), SolverEngine(GAME, 1))
    ]
    assert choices[0] == choices[1]
    # The centre is full, and both columns beside it win.
    assert set(choices[0]) == {2, 4}
    assert 140 < choices[0].count(2) < 260
    assert choices[0] != [engine.choose(position) for _ in range(400)]


def test_another_board_is_refused():
    with pytest.raises(UserError, match="board gomoku:9: this solver plays connect_four only"):
        SolverEngine(make_game("gomoku:9"), seed=0)


def test_a_missing_solver_is_named(monkeypatch):
    connect_four._make_solver.cache_clear()
    monkeypatch.setitem(sys.modules, "bitbully", None)
    with pytest.raises(UserError, match=r"pip install 'alphagat\[solvers\]'"):
        SolverEngine(GAME, seed=0)
