import chex
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.games import make_game
from alphagat.learner.loss import AuxiliaryLoss, Batch, alphazero_loss
from alphagat.networks import make_network
from tests.learner.networks import TinyNetwork, random_batch

NETWORK = TinyNetwork()


def make_params(batch):
    return NETWORK.init(jax.random.key(0), jnp.asarray(batch.nodes))


def slow_loss(logits, values, batch):
    """Computes the loss one example and legal action at a time, in float64."""
    policy = entropy = 0.0
    examples = zip(logits.astype(np.float64), batch.legal_action_mask, batch.policy_target, batch.policy_weight)
    for row, legal, target, weight in examples:
        (actions,) = np.nonzero(legal)
        chance = np.exp(row[actions]) / np.exp(row[actions]).sum()
        policy -= weight * (target[actions] * np.log(chance)).sum()
        entropy -= (chance * np.log(chance)).sum()
    squares = (values.astype(np.float64) - batch.value_target) ** 2
    return policy / len(logits), squares.mean(), entropy / len(logits)


@pytest.mark.parametrize("value_weight", [1.0, 0.25])
def test_loss_equals_its_definition(value_weight):
    batch = random_batch(20)
    params = make_params(batch)
    logits, values = (np.asarray(x) for x in NETWORK.apply(params, batch.nodes))
    policy, value, entropy = slow_loss(logits, values, batch)
    loss, parts = alphazero_loss(params, NETWORK, jax.tree.map(jnp.asarray, batch), value_weight)
    np.testing.assert_allclose(parts["policy_loss"], policy, rtol=1e-5)
    np.testing.assert_allclose(parts["value_loss"], value, rtol=1e-5)
    np.testing.assert_allclose(parts["policy_entropy"], entropy, rtol=1e-5)
    np.testing.assert_allclose(loss, policy + value_weight * value, rtol=1e-5)


def test_a_single_legal_action_has_no_gradient():
    batch = jax.tree.map(lambda x: jnp.asarray(x[:1]), random_batch(4))
    (_, parts), gradients = jax.value_and_grad(alphazero_loss, has_aux=True)(make_params(batch), NETWORK, batch, 0.0)
    assert parts["policy_loss"] == parts["policy_entropy"] == 0
    chex.assert_trees_all_equal(gradients, jax.tree.map(jnp.zeros_like, gradients))


def test_an_unknown_value_has_no_loss():
    batch = jax.tree.map(jnp.asarray, random_batch(8))
    known = jnp.arange(8) % 2 * 1.0
    _, expected = alphazero_loss(params := make_params(batch), NETWORK, jax.tree.map(lambda x: x[1::2], batch), 1.0)
    _, parts = alphazero_loss(params, NETWORK, batch._replace(value_mask=known), 1.0)
    np.testing.assert_allclose(parts["value_loss"], expected["value_loss"] / 2, rtol=1e-6)


def test_illegal_logits_have_no_gradient():
    batch = jax.tree.map(
        jnp.asarray, random_batch(1)._replace(legal_action_mask=np.array([[True, False, True, False]]))
    )
    batch = batch._replace(policy_target=jnp.array([[0.5, 0.0, 0.5, 0.0]]), policy_weight=jnp.ones(1))
    gradients = jax.grad(alphazero_loss, has_aux=True)(make_params(batch), NETWORK, batch, 1.0)[0]
    bias = gradients["params"]["policy"]["bias"]
    assert (bias[jnp.array([1, 3])] == 0).all()
    assert (bias[jnp.array([0, 2])] != 0).all()


def test_gradients_equal_finite_differences():
    with jax.enable_x64(True):
        batch = jax.tree.map(jnp.asarray, random_batch(6, dtype=np.float64))
        params = jax.tree.map(lambda x: x.astype(jnp.float64), make_params(batch))
        flat, unravel = jax.flatten_util.ravel_pytree(params)

        @jax.jit
        def loss(flat):
            return alphazero_loss(unravel(flat), NETWORK, batch, 0.7)[0]

        gradients, step = jax.grad(loss)(flat), 1e-5
        assert gradients.dtype == jnp.float64
        units = step * jnp.eye(len(flat))
        slopes = (jax.vmap(loss)(flat[None] + units) - jax.vmap(loss)(flat[None] - units)) / (2 * step)
        np.testing.assert_allclose(gradients, slopes, atol=1e-8)
        assert abs(np.asarray(gradients)).min() > 1e-6


@pytest.mark.parametrize("ownership_weight", [0.0, 0.5])
def test_ownership_adds_its_mean_square_and_trains_the_trunk(ownership_weight):
    game = make_game("othello:4")
    options = {"backend": "dense", "width": 8, "num_blocks": 1, "num_heads": 2, "mlp_ratio": 1}
    options |= {"blocks": ("attention",), "key_size": 4, "mixing_groups": 1, "value_pools": 2}
    network = make_network(game.topology, name="gat", ownership_head=True, **options)
    generator = np.random.default_rng(0)
    nodes = generator.normal(size=(5, 17, game.num_features)).astype(np.float32)
    params = jax.jit(network.init)(jax.random.key(0), nodes)
    ownership = generator.integers(-1, 2, (5, 17)).astype(np.float32)
    without = Batch(nodes, np.ones((5, 17), bool), np.full((5, 17), 1 / 17), np.ones(5), np.zeros(5))
    loss_and_gradients = jax.jit(jax.value_and_grad(alphazero_loss, has_aux=True), static_argnums=(1, 4))
    (expected, _), gradients = loss_and_gradients(params, network, without, 1.0)
    assert not any(leaf.any() for leaf in jax.tree.leaves(gradients["params"]["ownership"]))
    part = AuxiliaryLoss(
        "ownership", ownership_weight, lambda prediction, target: jnp.square(prediction - target).mean(-1)
    )
    (loss, parts), with_ownership = loss_and_gradients(
        params, network, without._replace(auxiliary={"ownership": ownership}), 1.0, (part,)
    )
    apply = jax.jit(network.apply, static_argnames="with_auxiliary")
    logits, _, predictions = apply(params, nodes, with_auxiliary=True)
    predicted = predictions["ownership"]
    np.testing.assert_allclose(parts["ownership_loss"], ((np.asarray(predicted) - ownership) ** 2).mean(), rtol=1e-5)
    np.testing.assert_allclose(loss, expected + ownership_weight * parts["ownership_loss"], rtol=1e-5)
    np.testing.assert_array_equal(apply(params, nodes)[0], logits)
    changed = [
        not np.allclose(one, other, rtol=1e-4, atol=1e-7)
        for one, other in zip(jax.tree.leaves(gradients), jax.tree.leaves(with_ownership))
    ]
    assert sum(changed) > 10 if ownership_weight else not any(changed)
    mask = np.array([1, 0, 0, 1, 0], np.float32)
    batch = without._replace(auxiliary={"ownership": ownership}, auxiliary_mask=mask)
    (_, parts), _ = loss_and_gradients(params, network, batch, 1.0, (part,))
    errors = ((np.asarray(predicted) - ownership) ** 2).mean(axis=1)
    np.testing.assert_allclose(parts["ownership_loss"], (errors[0] + errors[3]) / 5, rtol=1e-5)
