"""Batches of states on the host: selecting and joining rows, compiled rules, and loops over chunks of one size."""

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np

from alphagat.games.base import Game

CHUNK = 1024


def take(states: Any, rows: Any) -> Any:
    return jax.tree.map(lambda x: x[rows], states)


def concatenate(parts: Iterable[Any]) -> Any:
    """Joins trees of host arrays along their first axis."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def stack(states: Iterable[Any]) -> Any:
    """Stacks trees of host arrays along a new first axis."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


def batch_of_one(state: Any) -> Any:
    """Returns a batch, on the host, that holds only `state`."""
    return jax.tree.map(lambda x: np.asarray(x)[None], state)


def count(states: Any) -> int:
    return len(states.terminated)


def chunks(num_rows: int, size: int = CHUNK) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields the rows of each chunk, and the same rows repeated cyclically to exactly `size`.

    All chunks have the same shape, so one compiled program serves all of them. The caller drops the results of the
    repeated rows.
    """
    for start in range(0, num_rows, size):
        rows = np.arange(start, min(start + size, num_rows))
        yield rows, np.resize(rows, size)


def play_all(game: Game, positions: Any, parents: np.ndarray, actions: np.ndarray) -> Any:
    """Returns the `[M]` states, on the host, after playing `actions` `[M]` from `positions[parents]`."""
    if not len(parents):
        return take(positions, slice(0))
    step, parts = compile_step(game), []
    for rows, padded in chunks(len(parents)):
        states = take(positions, parents[padded])
        keys = jax.random.split(jax.random.fold_in(jax.random.key(0), rows[0]), CHUNK)
        parts.append(jax.device_get(step(states, actions[padded].astype(np.int32), keys)))
    return take(concatenate(parts), slice(len(parents)))


def legal_actions(game: Game, positions: Any) -> np.ndarray:
    """Returns the masks `[N, A]` of `[N]` positions on the host."""
    describe, masks = compile_describe(game), np.zeros((count(positions), game.num_actions), bool)
    for rows, padded in chunks(len(masks)):
        *_, legal = describe(take(positions, padded))
        masks[rows] = np.asarray(legal)[: len(rows)]
    return masks


@functools.lru_cache(maxsize=64)
def compile_init(game: Game) -> Callable:
    return jax.jit(jax.vmap(game.init))


@functools.lru_cache(maxsize=64)
def compile_step(game: Game) -> Callable:
    return jax.jit(jax.vmap(game.step))


@functools.lru_cache(maxsize=64)
def compile_describe(game: Game) -> Callable:
    """Returns a function of a batch of states to their node features, edges (None if they are those of the board), and
    legal action masks.
    """
    return jax.jit(jax.vmap(lambda state: (game.observe(state), game.edges(state), state.legal_action_mask)))
