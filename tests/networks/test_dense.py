"""Linear maps and the split into heads have gradients in their cheap form."""

import flax.linen as nn
import jax
import numpy as np

from alphagat.networks.attention import split_heads
from alphagat.networks.dense import Dense

INPUTS = np.random.default_rng(0).normal(size=(3, 5, 8)).astype(np.float32)


def gradients(layer: nn.Dense, params: dict) -> dict:
    return jax.grad(lambda params: (layer.apply(params, INPUTS) ** 2).sum())(params)


def test_dense_equals_flax():
    params = nn.Dense(4).init(jax.random.key(0), INPUTS)
    np.testing.assert_allclose(Dense(4).apply(params, INPUTS), nn.Dense(4).apply(params, INPUTS), rtol=1e-6)
    jax.tree.map(
        lambda ours, usual: np.testing.assert_allclose(ours, usual, rtol=1e-5),
        gradients(Dense(4), params),
        gradients(nn.Dense(4), params),
    )


def test_the_gradient_of_a_kernel_contracts_one_axis():
    params = Dense(4).init(jax.random.key(0), INPUTS)
    for layer, num_axes in (Dense(4), 1), (nn.Dense(4), 2):
        program = jax.make_jaxpr(lambda params, layer=layer: gradients(layer, params))(params)
        products = [step for step in program.eqns if step.primitive.name == "dot_general"]
        contracted = [max(map(len, step.params["dimension_numbers"][0])) for step in products]
        assert max(contracted) == num_axes


def test_the_gradient_of_the_split_into_heads_is_one_concatenation():
    def total(projected: jax.Array) -> jax.Array:
        query, key, value = split_heads(projected, 2, 1)
        return (query * key * value).sum()

    names = [step.primitive.name for step in jax.make_jaxpr(jax.grad(total))(INPUTS[..., :6]).eqns]
    assert names.count("concatenate") == 1
    assert "pad" not in names
