"""Perfect play: always a best move, any of them, and repeatable by its seed."""

import sys

import pytest

from alphagat.errors import UserError
from alphagat.evaluation import connect_four_solver
from alphagat.evaluation.engines.solver import SolverEngine
from alphagat.evaluation.solvers import solve
from alphagat.games import make_game
from tests.evaluation.host_games import begin, play_against_random, play_game, position_after

GAME = make_game("connect_four")


@pytest.fixture(scope="module")
def engine():
    pytest.importorskip("bitbully", reason="bitbully is not installed")
    return SolverEngine(GAME, seed=0)


def test_first_player_wins_on_last_possible_ply(engine):
    """Allis (1988): in the centre, and, against the longest defence, with the last but one disc."""
    assert engine.choose(begin(GAME)) == 3
    last = play_game([engine.choose, engine.choose], GAME)[-1]
    assert len(last.moves) == 41
    assert last.state.rewards.tolist() == [1, -1]


def test_random_play_loses_to_solver(engine):
    for seed in range(4):
        assert play_against_random(engine, GAME, seed)[-1].state.rewards[seed % 2] == 1


def test_best_moves_are_equally_likely_and_reproducible(engine):
    position = position_after("connect_four", *"444444")
    choices = [
        [player.choose(position) for _ in range(400)] for player in (SolverEngine(GAME, 1), SolverEngine(GAME, 1))
    ]
    assert choices[0] == choices[1]
    # The centre is full, and both columns beside it win.
    assert set(choices[0]) == {2, 4}
    assert 140 < choices[0].count(2) < 260
    assert choices[0] != [engine.choose(position) for _ in range(400)]


def test_unsupported_board_is_rejected():
    with pytest.raises(UserError, match="board gomoku:9: this solver plays connect_four, hex:4, hex:5 only"):
        SolverEngine(make_game("gomoku:9"), seed=0)


@pytest.mark.parametrize("board", ["hex:4", "hex:5"])
def test_hex_solver_wins_every_won_position(board):
    game = make_game(board)
    for seed in range(6):
        side, positions = seed % 2, play_against_random(SolverEngine(game, seed), game, seed)
        values = [
            solve(board).action_values(position.state).max() for position in positions[:-1] if position.player == side
        ]
        assert values == sorted(values)  # what is won stays so
        assert side == 1 or values[0] == 1
        assert positions[-1].state.rewards[side] == values[-1]
    first, second = SolverEngine(game, 0), SolverEngine(game, 1)
    assert play_game([first.choose, second.choose], game)[-1].state.rewards.tolist() == [1, -1]
    # In the acute corner the first move loses.
    assert play_game([lambda p: first.choose(p) if p.moves else 0, second.choose], game)[-1].state.rewards[1] == 1


def test_hex_moves_are_uniform_over_winning_moves_or_all_moves_when_lost():
    game = make_game("hex:4")
    engine = SolverEngine(game, seed=0)
    choices = [engine.choose(begin(game)) for _ in range(400)]
    assert {game.action_names[choice] for choice in choices} == {"d1", "c2", "b3", "a4"}
    assert all(60 < choices.count(choice) < 140 for choice in set(choices))
    lost = position_after("hex:4", "d1")
    assert len({engine.choose(lost) for _ in range(400)}) == 15


def test_missing_solver_package_is_named(monkeypatch):
    connect_four_solver._make_solver.cache_clear()
    monkeypatch.setitem(sys.modules, "bitbully", None)
    with pytest.raises(UserError, match=r"pip install 'alphagat\[solvers\]'"):
        SolverEngine(GAME, seed=0)
