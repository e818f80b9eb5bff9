"""Positions that tests name by the moves that lead to them, and counts of such positions."""

import functools

import jax
import numpy as np

from alphagat.games import make_game
from alphagat.games.batches import legal_actions, play_all
from alphagat.games.states import first_state


@functools.cache
def jitted_step(name):
    return jax.jit(make_game(name).step)


def play(name, moves):
    """Plays moves by name, e.g. `b1`, and returns the state."""
    game, step = make_game(name), jitted_step(name)
    state = first_state(game)
    for move in moves.split():
        action = game.action_names.index(move)
        assert state.legal_action_mask[action]
        state = step(state, np.int32(action), jax.random.key(0))
    return state


def perft(game, states, depth):
    """Returns, by ply, the number of sequences of legal moves from `[B]` states."""
    states, counts = jax.device_get(states), []
    for ply in range(depth):
        parents, actions = np.nonzero(legal_actions(game, states))
        counts.append(len(actions))
        if ply + 1 < depth:
            states = play_all(game, states, parents, actions)
    return counts
