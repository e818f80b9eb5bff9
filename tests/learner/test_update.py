import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from alphagat.learner import update
from alphagat.learner.loss import alphazero_loss
from alphagat.runtime import sharding
from tests.learner.networks import TinyNetwork, random_batch

NETWORK = TinyNetwork()
BATCH = random_batch(32)
PARAMS = NETWORK.init(jax.random.key(0), jnp.asarray(BATCH.nodes))
FIND_GRADIENTS = functools.partial(update.mean_gradients, network=NETWORK, value_weight=0.5)


def start(optimizer, step=0, scale_loss=False):
    health = update.make_health(scale_loss=scale_loss)
    return update.TrainState(PARAMS, optimizer.init(PARAMS), jnp.int32(step), health)


def reference():
    return jax.grad(alphazero_loss, has_aux=True)(PARAMS, NETWORK, jax.tree.map(jnp.asarray, BATCH), 0.5)


def gradients_on(num_devices):
    """Computes the gradients under the mapping of a training iteration."""
    mesh = sharding.make_mesh(num_devices)
    mapped = jax.shard_map(
        lambda params, batch: FIND_GRADIENTS(params, jnp.float32(1), batch, axis_name=sharding.DATA),
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


def test_the_comparison_detects_a_sum_instead_of_a_mean(monkeypatch):
    monkeypatch.setattr(jax.lax, "pmean", jax.lax.psum)
    with pytest.raises(AssertionError):
        assert_equal_to_reference(2)


def test_no_axis_means_no_average():
    found = FIND_GRADIENTS(PARAMS, jnp.float32(1), jax.tree.map(jnp.asarray, BATCH))
    chex.assert_trees_all_close(found, reference(), rtol=1e-6)


@pytest.mark.parametrize("as_one_vector", [False, True])
def test_an_update_descends_the_gradient(as_one_vector):
    batch = jax.tree.map(jnp.asarray, BATCH)
    optimizer = optax.sgd(0.125)
    step = jax.jit(update.make_update(FIND_GRADIENTS, optimizer, as_one_vector=as_one_vector))
    train, metrics = step(start(optimizer, 4), batch)
    gradients, parts = reference()
    assert train.step == 5
    expected = jax.tree.map(lambda before, gradient: before - 0.125 * gradient, PARAMS, gradients)
    chex.assert_trees_all_close(train.params, expected, rtol=1e-5, atol=1e-7)
    norm = np.sqrt(sum((np.asarray(leaf, np.float64) ** 2).sum() for leaf in jax.tree.leaves(gradients)))
    np.testing.assert_allclose(metrics["grad_norm"], norm, rtol=1e-5)
    by_part = {name: value for name, value in metrics.items() if name.startswith("grad_norm/")}
    assert set(metrics) == {*parts, "grad_norm", *by_part}
    assert set(by_part) == {f"grad_norm/{name}" for name in PARAMS["params"]}
    np.testing.assert_allclose(np.sqrt(sum(float(each) ** 2 for each in by_part.values())), norm, rtol=1e-5)


def test_one_vector_takes_one_sum_per_part_of_the_network():
    gradients = {"params": {"one": {"kernel": jnp.ones((2, 2)), "bias": jnp.ones(2)}, "other": {"scale": jnp.ones(3)}}}

    def count_sums(as_one_vector):
        norms = functools.partial(update.gradient_norms, as_one_vector=as_one_vector)
        return jax.jit(norms).lower(gradients).as_text().count("stablehlo.reduce(")

    assert count_sums(False) - count_sums(True) == 1  # kernel and bias


@pytest.mark.parametrize("decay", [0.5, 0.9])
def test_the_ema_follows_the_parameters(decay):
    batch = jax.tree.map(jnp.asarray, BATCH)
    optimizer = optax.sgd(0.125)
    step = jax.jit(update.make_update(FIND_GRADIENTS, optimizer, ema_decay=decay))
    train = start(optimizer).replace(average=PARAMS)
    plain = start(optimizer)
    expected = jax.tree.map(np.asarray, PARAMS)
    for _ in range(3):
        train, _ = step(train, batch)
        plain, _ = step(plain, batch)
        expected = jax.tree.map(lambda old, new: decay * old + (1 - decay) * np.asarray(new), expected, train.params)
        chex.assert_trees_all_equal(train.params, plain.params)
    chex.assert_trees_all_close(train.average, expected, rtol=1e-5, atol=1e-7)
    assert train.acting is train.average
    assert plain.acting is plain.params


@pytest.mark.parametrize("num_micro_batches", [2, 8, 32])
def test_micro_batches_give_the_gradient_of_the_batch(num_micro_batches):
    batch = jax.tree.map(jnp.asarray, BATCH)
    found = jax.jit(functools.partial(FIND_GRADIENTS, num_micro_batches=num_micro_batches))(
        PARAMS, jnp.float32(1), batch
    )
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(reference()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6 * float(abs(other).max()))


def test_the_loss_scale_cancels_in_the_gradients():
    found = FIND_GRADIENTS(PARAMS, jnp.float32(2.0**12), jax.tree.map(jnp.asarray, BATCH))
    chex.assert_trees_all_close(found, reference(), rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_nonfinite_update_changes_only_the_health(bad):
    optimizer = optax.adam(0.1)
    step = jax.jit(update.make_update(FIND_GRADIENTS, optimizer, ema_decay=0.5))
    good = jax.tree.map(jnp.asarray, BATCH)
    broken = good._replace(value_target=good.value_target.at[3].set(bad))
    before, _ = step(start(optimizer).replace(average=PARAMS), good)
    train = before
    for number in (1, 2):
        train, _ = step(train, broken)
        assert train.health.skipped == train.health.skipped_in_a_row == number
    chex.assert_trees_all_equal(train.replace(health=0), before.replace(health=0))
    train, _ = step(train, good)
    assert (int(train.health.skipped), int(train.health.skipped_in_a_row), int(train.step)) == (2, 0, 2)
    train, _ = step(train, broken)
    assert (int(train.health.skipped), int(train.health.skipped_in_a_row), int(train.step)) == (3, 1, 2)
    assert train.health.loss_scale == 1


def test_the_loss_scale_halves_on_overflow_and_doubles_periodically(monkeypatch):
    monkeypatch.setattr(update, "GROWTH_INTERVAL", 3)
    health = update.make_health(scale_loss=True)
    scales = []
    for is_finite in (True, True, False, True, True, True, True):
        health = update.next_health(health, jnp.bool_(is_finite), scale_loss=True)
        scales.append(float(health.loss_scale) / update.FIRST_LOSS_SCALE)
    assert scales == [1, 1, 0.5, 0.5, 0.5, 1, 1]
    least = health.replace(loss_scale=jnp.float32(1.5))
    for _ in range(2):
        least = update.next_health(least, jnp.bool_(False), scale_loss=True)
    assert least.loss_scale == update.LEAST_LOSS_SCALE == 1  # halved for ever, it would become 0
    largest = health.replace(loss_scale=jnp.float32(update.LARGEST_LOSS_SCALE), since_scaled=jnp.int32(2))
    assert update.next_health(largest, jnp.bool_(True), scale_loss=True).loss_scale == update.LARGEST_LOSS_SCALE


def test_an_overflow_counts_as_in_a_row_only_at_the_least_loss_scale():
    health = update.make_health(scale_loss=True).replace(loss_scale=jnp.float32(4))
    counts = []
    for is_finite in (False, False, False, False, True):
        health = update.next_health(health, jnp.bool_(is_finite), scale_loss=True)
        counts.append((int(health.skipped), int(health.skipped_in_a_row), float(health.loss_scale)))
    assert counts == [(1, 0, 2), (2, 0, 1), (3, 1, 1), (4, 2, 1), (4, 0, 1)]
