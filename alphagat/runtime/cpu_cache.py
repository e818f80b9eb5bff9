"""Processes batches in parts whose activations fit into the cache of a CPU core."""

import math
from collections.abc import Callable
from typing import TypeVar

import jax
import numpy as np

POSITIONS_AT_ONCE = 16  # benchmarks/micro_batches.py measures it

Batch = TypeVar("Batch")
Result = TypeVar("Result")


def fewest_parts(num_positions: int) -> int:
    """Returns the number of parts that fit: of at most `POSITIONS_AT_ONCE` on a CPU, and 1 on an accelerator."""
    return math.ceil(num_positions / POSITIONS_AT_ONCE) if jax.default_backend() == "cpu" else 1


def map_in_parts(function: Callable[[Batch], Result], batch: Batch) -> Result:
    """Applies `function`, which treats every row independently, to a batch `[B, ...]`: in `fewest_parts(B)` equal
    parts.

    Rows are repeated if the parts do not divide the batch.
    """
    size = len(jax.tree.leaves(batch)[0])
    num_parts = fewest_parts(size)
    if num_parts <= 1:
        return function(batch)
    part = math.ceil(size / num_parts)
    rows = np.resize(np.arange(size), num_parts * part)
    padded = batch if num_parts * part == size else jax.tree.map(lambda x: x[rows], batch)
    results = jax.lax.map(function, jax.tree.map(lambda x: x.reshape(num_parts, part, *x.shape[1:]), padded))
    return jax.tree.map(lambda x: x.reshape(num_parts * part, *x.shape[2:])[:size], results)
