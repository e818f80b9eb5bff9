"""As many games of a few plies as OpenSpiel counts, and as many of them over."""

import jax
import numpy as np
import pyspiel
import pytest

from alphagat.games import make_game
from alphagat.games.batches import compile_init, legal_actions, play_all


def count_ours(name, depth):
    """Returns how many games last `depth` plies, and how many of them are over by then."""
    game = make_game(name)
    states = jax.device_get(compile_init(game)(jax.random.key(0)[None]))
    for _ in range(depth):
        states = play_all(game, states, *np.nonzero(legal_actions(game, states)))
    return len(states.terminated), int(states.terminated.sum())


def count_theirs(state, depth):
    if depth == 0:
        return 1, int(state.is_terminal())
    if state.is_terminal():
        return 0, 0
    return tuple(np.sum([count_theirs(state.child(action), depth - 1) for action in state.legal_actions()], axis=0))


@pytest.mark.parametrize(
    ("name", "theirs", "depth"),
    [
        ("tic_tac_toe", "tic_tac_toe", 5),
        ("connect_four", "connect_four", 4),
        ("hex:2:swap", "hex(board_size=2,swap=true)", 4),
        ("hex:3", "hex(board_size=3)", 5),
        ("breakthrough:6", "breakthrough(rows=6,columns=6)", 3),
        ("breakthrough:8", "breakthrough(rows=8,columns=8)", 3),
        ("go:5", "go(board_size=5,komi=7.5)", 3),
    ],
)
def test_perft_matches_open_spiel(name, theirs, depth):
    assert count_ours(name, depth) == count_theirs(pyspiel.load_game(theirs).new_initial_state(), depth)
