"""What the output of a value head means, and what it learns from.

Without a support the output `[B]` is the value itself, in (-1, 1). With a support of K returns the output `[B, K]` is
the logits of a belief over them, and the value is its mean: the support may be spaced as it likes, but the mean is
taken of returns, so no transform of values ever reaches a search or a bootstrap.
"""

import jax
import jax.numpy as jnp

Support = tuple[float, ...]  # ascending


def expected_value(output: jax.Array, support: Support | None) -> jax.Array:
    """Returns the value `[B]` that a head's output stands for."""
    if support is None:
        return output
    return jax.nn.softmax(output) @ jnp.asarray(support, output.dtype)


def two_hot(values: jax.Array, support: Support) -> jax.Array:
    """Splits each of `[B]` values over its two neighbours in the support, so that the mean stays: `[B, K]`, sums to 1.

    Values beyond the support count as its ends (Bellemare et al. 2017, equation 7, for one return).
    """
    atoms = jnp.asarray(support, jnp.float32)[None]
    values = jnp.clip(values, support[0], support[-1])[:, None]
    gaps = jnp.diff(atoms)
    rising = jnp.pad((values - atoms[:, :-1]) / gaps, ((0, 0), (1, 0)), constant_values=1.0)
    falling = jnp.pad((atoms[:, 1:] - values) / gaps, ((0, 0), (0, 1)), constant_values=1.0)
    return jnp.clip(jnp.minimum(rising, falling), 0.0)


def value_loss(output: jax.Array, target: jax.Array, support: Support | None) -> jax.Array:
    """Returns `[B]`: the squared error without a support, else the cross-entropy against the split target."""
    if support is None:
        return jnp.square(output - target)
    return -(two_hot(target, support) * jax.nn.log_softmax(output)).sum(-1)
