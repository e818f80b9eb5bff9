"""Helpers for games, and for single and batched states."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from alphagat.errors import UserError
from alphagat.games.base import Game, StochasticGame
from alphagat.games.batches import compile_init


def is_deterministic_duel(game: Game) -> bool:
    """Returns whether the game is for two players and without chance moves; its first position may be random."""
    return game.num_players == 2 and not isinstance(game, StochasticGame)


def moves_determine_positions(game: Game) -> bool:
    """Returns whether two players play without chance from a fixed position, so that moves alone describe a game."""
    return is_deterministic_duel(game) and not draws_its_start(game)


@functools.lru_cache(maxsize=64)
def draws_its_start(game: Game) -> bool:
    """Returns whether the first position depends on the key."""
    starts = jax.device_get(compile_init(game)(jax.random.split(jax.random.key(0), 4)))
    return any((leaf != leaf[:1]).any() for leaf in jax.tree.leaves(starts))


def first_state(game: Game) -> Any:
    """Returns an initial state. Compiles one program; eager `game.init` would compile each operation separately.

    Chance moves use key 0.
    """
    return _init_of(game)(jax.random.key(0))


@functools.lru_cache(maxsize=64)
def _init_of(game: Game) -> Callable:
    return jax.jit(game.init)


def select(condition: jax.Array, yes: Any, no: Any) -> Any:
    """Selects each of `[B]` states from `yes` if its `condition` `[B]` holds, else from `no`."""
    return jax.tree.map(lambda x, y: jnp.where(condition.reshape(-1, *[1] * (x.ndim - 1)), x, y), yes, no)


def network_inputs(game: Game, states: Any) -> tuple[jax.Array, jax.Array | None]:
    """Returns the features of the nodes of `[B]` states, `[B, V, F]`, and their edges, `[B, V, V, R]`, if they vary.

    Raises:
      UserError: `game.edges` returns an array for a topology with fixed edges, or none for one whose edges vary.
    """
    edges = jax.vmap(game.edges)(states)
    if (edges is not None) != game.topology.edges_vary:
        fix = "return an array [V, V, R]" if game.topology.edges_vary else "return None, or take complete_topology"
        raise UserError(
            f"board {game.name}: edges(state) returns {'None' if edges is None else 'an array'}, but edges_vary of its "
            f"topology is {game.topology.edges_vary}; {fix}"
        )
    return jax.vmap(game.observe)(states), edges
