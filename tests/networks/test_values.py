"""A distribution over returns learns the mean of its targets."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from alphagat.networks.values import expected_value, two_hot, value_loss

SUPPORT = (0.0, 1.0, 4.0, 9.0, 16.0)


def test_two_hot_weighs_only_the_two_nearest_atoms():
    found = two_hot(jnp.array([0.0, 0.25, 4.0, 8.0, 16.0, -3.0, 99.0]), SUPPORT)
    wanted = [
        [1, 0, 0, 0, 0],
        [0.75, 0.25, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 0.2, 0.8, 0],
        [0, 0, 0, 0, 1],
        [1, 0, 0, 0, 0],
        [0, 0, 0, 0, 1],
    ]
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_two_hot_keeps_the_mean_and_sums_to_one():
    values = jnp.asarray(np.random.default_rng(0).uniform(0, 16, 200), jnp.float32)
    weights = two_hot(values, SUPPORT)
    np.testing.assert_allclose(weights @ np.array(SUPPORT), values, rtol=1e-5)
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-6)
    assert ((weights > 0).sum(-1) <= 2).all()


def test_learns_the_mean_of_returns_not_of_their_transforms():
    """Returns of 0 and 16 with equal probability have the mean 8; the mean of their square roots would give 4."""
    targets = jnp.array([0.0, 16.0])
    output = jnp.zeros(len(SUPPORT))
    optimizer = optax.adam(0.3)
    state = optimizer.init(output)

    def loss(output):
        return value_loss(jnp.broadcast_to(output, (2, len(SUPPORT))), targets, SUPPORT).mean()

    @jax.jit
    def step(output, state):
        updates, state = optimizer.update(jax.grad(loss)(output), state)
        return optax.apply_updates(output, updates), state

    for _ in range(200):
        output, state = step(output, state)
    np.testing.assert_allclose(expected_value(output[None], SUPPORT), [8.0], atol=0.1)


def test_without_a_support_the_output_is_the_value():
    output, target = jnp.array([0.5, -1.0]), jnp.array([1.0, 1.0])
    np.testing.assert_array_equal(expected_value(output, None), output)
    np.testing.assert_array_equal(value_loss(output, target, None), [0.25, 4.0])
