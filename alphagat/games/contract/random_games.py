"""Random games of a board, recorded position by position."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.games.base import Game
from alphagat.games.batches import compile_init

MAX_RECORDED_PLIES = 300


@dataclasses.dataclass(frozen=True)
class RandomGames:
    """B random games, each one ply longer than any game lasts, or `MAX_RECORDED_PLIES` plies.

    Position 0 is the first, and action t follows position t.

    Attributes:
      game: the board.
      actions: `[T, B]` int32, arbitrary once terminated.
      legal: `[T + 1, B, A]` bool.
      states: the states, `[T + 1, B, ...]`.
    """

    game: Game
    actions: np.ndarray
    legal: np.ndarray
    states: Any

    @property
    def number(self) -> int:
        return self.actions.shape[1]

    @property
    def players(self) -> np.ndarray:
        """Returns `[T + 1, B]` int8, the player to move."""
        return self.states.current_player

    @property
    def rewards(self) -> np.ndarray:
        """Returns `[T + 1, B, num_players]` float32, the rewards of the last move."""
        return self.states.rewards

    @property
    def terminated(self) -> np.ndarray:
        """Returns `[T + 1, B]` bool."""
        return self.states.terminated

    def length(self, number: int) -> int:
        """Returns the plies of one game until it is over, or until the record ends."""
        over = self.terminated[:, number]
        return int(np.argmax(over)) if over.any() else len(over) - 1

    def state(self, ply: int, number: int = 0) -> Any:
        """Returns one position of one game."""
        return jax.tree.map(lambda x: x[ply, number], self.states)

    @functools.cached_property
    def features(self) -> np.ndarray:
        """Returns `[T + 1, B, V, F]`, the features of all positions."""
        return np.asarray(compile_features(self.game)(self.states))


def play(game: Game, num_games: int, seed: int) -> RandomGames:
    """Plays games in which each move is drawn from the legal actions, all equally likely.

    The game must have kept `declarations.check_shapes`.
    """
    init_key, play_key = jax.random.split(jax.random.key(seed))
    first = compile_init(game)(jax.random.split(init_key, num_games))
    actions, states, legal = jax.device_get(_compile_play(game)(first, play_key))
    return RandomGames(game, actions[:-1], legal, states)


@functools.lru_cache(maxsize=64)
def compile_features(game: Game) -> Callable:
    """Returns a function of states `[T, B, ...]` to their features `[T, B, V, F]`."""
    return jax.jit(jax.vmap(jax.vmap(game.observe)))


@functools.lru_cache(maxsize=64)
def _compile_play(game: Game) -> Callable:
    """Returns a function of first states `[B]` and a key to actions, states and legal actions, `[T + 1, B, ...]`."""

    def ply(states, key):
        action_key, step_key = jax.random.split(key)
        legal = jax.vmap(lambda state: state.legal_action_mask)(states)
        actions = jax.random.categorical(action_key, jnp.where(legal, 0.0, -1e9)).astype(jnp.int32)
        after = jax.vmap(game.step)(states, actions, jax.random.split(step_key, len(actions)))
        return after, (actions, states, legal)

    def play_on(first, key):
        num_positions = min(game.max_plies + 1, MAX_RECORDED_PLIES) + 1
        return jax.lax.scan(ply, first, jax.random.split(key, num_positions))[1]

    return jax.jit(play_on)
