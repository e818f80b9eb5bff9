"""Linear maps of the last axis."""

import functools
from typing import Any

import flax.linen as nn
import jax


def dot_rows(inputs: jax.Array, kernel: jax.Array, dimension_numbers: Any = None, **options: Any) -> jax.Array:
    """Computes the `dot_general` of `flax.linen.Dense` with all leading axes flattened into one.

    On a CPU the gradient takes 2.5 times as long if they are not flattened.
    """
    del dimension_numbers
    rows = inputs.reshape(-1, inputs.shape[-1])
    products = jax.lax.dot_general(rows, kernel, (((1,), (0,)), ((), ())), **options)
    return products.reshape(*inputs.shape[:-1], -1)


Dense = functools.partial(nn.Dense, dot_general=dot_rows)
