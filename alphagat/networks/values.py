"""The output of a value head, and its loss.

Without a support, the output `[B]` is the value itself, in (-1, 1). With a support of K returns, the output `[B, K]`
holds the logits of a distribution over these returns, and the value is its mean. The spacing of the support is
arbitrary. The mean is over untransformed returns, so search and bootstrap never see transformed values.
"""

import jax
import jax.numpy as jnp

Support = tuple[float, ...]  # ascending


def expected_value(output: jax.Array, support: Support | None) -> jax.Array:
    """Returns the value `[B]` for the output of a value head."""
    if support is None:
        return output
    return jax.nn.softmax(output) @ jnp.asarray(support, output.dtype)


def two_hot(values: jax.Array, support: Support) -> jax.Array:
    """Returns the distributions `[B, K]` with mean `values` `[B]` on the two nearest atoms of the support.

    Values outside the support are clipped to its ends (Bellemare et al. 2017, equation 7, for one return).
    """
    atoms = jnp.asarray(support, jnp.float32)[None]
    values = jnp.clip(values, support[0], support[-1])[:, None]
    gaps = jnp.diff(atoms)
    rising = jnp.pad((values - atoms[:, :-1]) / gaps, ((0, 0), (1, 0)), constant_values=1.0)
    falling = jnp.pad((atoms[:, 1:] - values) / gaps, ((0, 0), (0, 1)), constant_values=1.0)
    return jnp.clip(jnp.minimum(rising, falling), 0.0)


def value_loss(output: jax.Array, target: jax.Array, support: Support | None) -> jax.Array:
    """Returns `[B]`: the squared error without a support, else the cross-entropy against `two_hot(target)`."""
    if support is None:
        return jnp.square(output - target)
    return -(two_hot(target, support) * jax.nn.log_softmax(output)).sum(-1)
