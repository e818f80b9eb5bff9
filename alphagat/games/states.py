"""Batches of states."""

from typing import Any

import jax
import jax.numpy as jnp


def select(condition: jax.Array, yes: Any, no: Any) -> Any:
    """Takes each of the `[B]` states from `yes` where `condition` `[B]`, else from `no`."""
    return jax.tree.map(lambda x, y: jnp.where(condition.reshape(-1, *[1] * (x.ndim - 1)), x, y), yes, no)
