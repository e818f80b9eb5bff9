import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from alphagat import sharding
from alphagat.learner import update
from alphagat.learner.loss import alphazero_loss
from tests.learner.networks import TinyNetwork, random_batch

NETWORK = TinyNetwork()
BATCH = random_batch(32)
PARAMS = NETWORK.init(jax.random.key(0), jnp.asarray(BATCH.nodes))


def reference():
    return jax.grad(alphazero_loss, has_aux=True)(PARAMS, NETWORK, jax.tree.map(jnp.asarray, BATCH), 0.5)


def gradients_on(num_devices):
    """Raw gradients, before any optimizer, mapped as in the training iteration."""
    mesh = sharding.make_mesh(num_devices)
    mapped = jax.shard_map(
        lambda params, batch: update.mean_gradients(params, NETWORK, batch, 0.5, sharding.DATA),
        mesh=mesh,
        in_specs=(sharding.REPLICATED, sharding.SHARDED),
        out_specs=sharding.REPLICATED,
        check_vma=False,
    )
    return jax.jit(mapped)(PARAMS, BATCH)


def assert_equal_to_reference(num_devices):
    for found, expected in zip(jax.tree.leaves(gradients_on(num_devices)), jax.tree.leaves(reference()), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * float(abs(expected).max()))


@pytest.mark.parametrize("num_devices", [1, 2, 4, 8])
def test_gradients_are_the_same_on_any_number_of_devices(num_devices):
    assert_equal_to_reference(num_devices)


def test_a_sum_in_place_of_the_mean_would_be_seen(monkeypatch):
    monkeypatch.setattr(jax.lax, "pmean", jax.lax.psum)
    with pytest.raises(AssertionError):
        assert_equal_to_reference(2)


def test_without_an_axis_nothing_is_averaged():
    found = update.mean_gradients(PARAMS, NETWORK, jax.tree.map(jnp.asarray, BATCH), 0.5, None)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(reference()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_an_update_goes_down_the_gradient():
    batch = jax.tree.map(jnp.asarray, BATCH)
    optimizer = optax.sgd(0.125)
    step = jax.jit(update.make_update(NETWORK, optimizer, value_weight=0.5, axis_name=None))
    train, metrics = step(update.TrainState(PARAMS, optimizer.init(PARAMS), jnp.int32(4)), batch)
    gradients, parts = reference()
    assert train.step == 5
    for after, before, gradient in zip(*(jax.tree.leaves(x) for x in (train.params, PARAMS, gradients))):
        np.testing.assert_allclose(after, before - 0.125 * gradient, rtol=1e-5, atol=1e-7)
    norm = np.sqrt(sum((np.asarray(leaf, np.float64) ** 2).sum() for leaf in jax.tree.leaves(gradients)))
    np.testing.assert_allclose(metrics["grad_norm"], norm, rtol=1e-5)
    assert set(metrics) == {*parts, "grad_norm"}


@pytest.mark.parametrize("decay", [0.5, 0.9])
def test_the_average_follows_the_parameters(decay):
    batch = jax.tree.map(jnp.asarray, BATCH)
    optimizer = optax.sgd(0.125)
    step = jax.jit(update.make_update(NETWORK, optimizer, value_weight=0.5, axis_name=None, average_decay=decay))
    train = update.TrainState(PARAMS, optimizer.init(PARAMS), jnp.int32(0), PARAMS)
    plain = update.TrainState(PARAMS, optimizer.init(PARAMS), jnp.int32(0))
    expected = jax.tree.map(np.asarray, PARAMS)
    for _ in range(3):
        train, _ = step(train, batch)
        plain, _ = step(plain, batch)
        expected = jax.tree.map(lambda old, new: decay * old + (1 - decay) * np.asarray(new), expected, train.params)
        for one, other in zip(jax.tree.leaves(train.params), jax.tree.leaves(plain.params), strict=True):
            np.testing.assert_array_equal(one, other)
    for one, other in zip(jax.tree.leaves(train.average), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
    assert train.acting is train.average
    assert plain.acting is plain.params
