"""States, one or a batch of them."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from alphagat.games.base import Game


def first_state(game: Game) -> Any:
    """Returns a first state, computed as one program: `game.init` would compile each of its operations alone.

    Chance, where the board has any, is drawn from key 0.
    """
    return _init_of(game)(jax.random.key(0))


@functools.lru_cache(maxsize=64)
def _init_of(game: Game) -> Callable:
    return jax.jit(game.init)


def select(condition: jax.Array, yes: Any, no: Any) -> Any:
    """Takes each of the `[B]` states from `yes` where `condition` `[B]`, else from `no`."""
    return jax.tree.map(lambda x, y: jnp.where(condition.reshape(-1, *[1] * (x.ndim - 1)), x, y), yes, no)
