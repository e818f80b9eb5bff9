"""A ring buffer of samples on the device."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
from flax import struct


class Replay(struct.PyTreeNode):
    """A ring of the newest samples; new blocks overwrite the oldest.

    Attributes:
      samples: any pytree whose leaves have the leading axis `[C]`.
      cursor: `[]` int32, the start of the next block.
      size: `[]` int32; the first `size` samples are valid.
    """

    samples: Any
    cursor: jax.Array
    size: jax.Array

    @property
    def capacity(self) -> int:
        return jax.tree.leaves(self.samples)[0].shape[0]


def make_replay(example: Any, capacity: int) -> Replay:
    """Returns an empty ring for samples shaped like `example` (one sample)."""
    samples = jax.tree.map(lambda x: jnp.zeros((capacity, *x.shape), x.dtype), example)
    return Replay(samples, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def add(replay: Replay, block: Any, valid: jax.Array) -> Replay:
    """Writes a block of samples (leading axis `[M]`) at the cursor if `valid` (`[]` bool).

    All blocks have the same M, which divides the capacity, so that no block wraps around.
    """
    chex.assert_trees_all_equal_structs(block, replay.samples)
    chex.assert_shape(valid, ())
    length = jax.tree.leaves(block)[0].shape[0]
    if replay.capacity % length:
        raise ValueError(f"the capacity {replay.capacity} is not a multiple of the block's length {length}")

    def write(ring: jax.Array, new: jax.Array) -> jax.Array:
        chex.assert_shape(new, (length, *ring.shape[1:]))
        old = jax.lax.dynamic_slice_in_dim(ring, replay.cursor, length, axis=0)
        return jax.lax.dynamic_update_slice_in_dim(ring, jnp.where(valid, new, old), replay.cursor, axis=0)

    samples = jax.tree.map(write, replay.samples, block)
    counted = jnp.where(valid, length, 0)
    return Replay(
        samples=samples,
        cursor=(replay.cursor + counted) % replay.capacity,
        size=jnp.minimum(replay.size + counted, replay.capacity),
    )


def sample(replay: Replay, key: jax.Array, num_samples: int) -> Any:
    """Samples uniformly with replacement from a non-empty ring."""
    chex.assert_shape(replay.size, ())
    indices = jax.random.randint(key, (num_samples,), 0, replay.size)
    return jax.tree.map(lambda x: x[indices], replay.samples)
