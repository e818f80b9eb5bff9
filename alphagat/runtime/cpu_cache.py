"""Batches in parts whose activations fit into the cache of a CPU core."""

import math
from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp

POSITIONS_AT_ONCE = 16  # benchmarks/micro_batches.py measures it

Batch = TypeVar("Batch")
Result = TypeVar("Result")


def map_in_parts(function: Callable[[Batch], Result], batch: Batch) -> Result:
    """Applies `function` to a batch `[B, ...]`, on a CPU in equal parts of at most `POSITIONS_AT_ONCE` rows.

    `function` maps each row on its own. Parts that do not divide the batch repeat its last row.
    """
    size = len(jax.tree.leaves(batch)[0])
    num_parts = math.ceil(size / POSITIONS_AT_ONCE)
    if jax.default_backend() != "cpu" or num_parts <= 1:
        return function(batch)
    part = math.ceil(size / num_parts)
    rows = jnp.minimum(jnp.arange(num_parts * part), size - 1)
    padded = batch if num_parts * part == size else jax.tree.map(lambda x: x[rows], batch)
    results = jax.lax.map(function, jax.tree.map(lambda x: x.reshape(num_parts, part, *x.shape[1:]), padded))
    return jax.tree.map(lambda x: x.reshape(num_parts * part, *x.shape[2:])[:size], results)
