"""Random games of ours, played once per board and shared by the tests."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.games import make_game

MAX_RECORDED_PLIES = 300
FIRST_SEED = 7


class Record(NamedTuple):
    """B random games, each one ply longer than any game lasts, or `MAX_RECORDED_PLIES` plies; position 0 is the first,
    action t follows position t.
    """

    actions: np.ndarray  # [T, B] int32, arbitrary once terminated
    players: np.ndarray  # [T + 1, B]
    legal: np.ndarray  # [T + 1, B, A]
    rewards: np.ndarray  # [T + 1, B, P]
    terminated: np.ndarray  # [T + 1, B]
    states: object  # [T + 1, B, ...]

    def length(self, game: int) -> int:
        """Returns the number of moves until the game is over, or the record."""
        over = self.terminated[:, game]
        return int(np.argmax(over)) if over.any() else len(over) - 1


@functools.cache
def compile_random_play(name: str, num_games: int):
    """Returns a function of a key to actions `[T, B]`, states `[T + 1, B]`, and their legal actions."""
    game = make_game(name)

    def play(key):
        def ply(state, key):
            logits = jnp.where(state.legal_action_mask, 0.0, -1e9)
            action = jax.random.categorical(key, logits).astype(jnp.int32)
            after = jax.vmap(game.step)(state, action, jax.random.split(key, num_games))
            return after, (action, after)

        first = jax.vmap(game.init)(jax.random.split(key, num_games))
        num_plies = min(game.max_plies + 1, MAX_RECORDED_PLIES)
        _, (actions, rest) = jax.lax.scan(ply, first, jax.random.split(key, num_plies))
        states = jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), first, rest)
        return actions, states, states.legal_action_mask

    return jax.jit(play)


def pytest_generate_tests(metafunc):
    if metafunc.definition.get_closest_marker("every_board"):
        metafunc.parametrize("name", metafunc.config.getoption("--board") or metafunc.module.BOARDS)
    if "game_seed" in metafunc.fixturenames:
        seeds = range(FIRST_SEED, FIRST_SEED + metafunc.config.getoption("--rounds"))
        metafunc.parametrize("game_seed", seeds, scope="session")


def make_recorder(seed: int):
    """Returns a function of (board's name, number of games) to a Record, the same one for the same arguments."""

    @functools.cache
    def record_games(name: str, num_games: int) -> Record:
        actions, states, legal = compile_random_play(name, num_games)(jax.random.key(seed))
        states = jax.device_get(states)
        host = (np.asarray(x) for x in (actions, states.current_player, legal, states.rewards, states.terminated))
        return Record(*host, states)

    return record_games


@pytest.fixture(scope="session")
def record(game_seed):
    """Returns a function of (board's name, number of games) to a Record."""
    return make_recorder(game_seed)
