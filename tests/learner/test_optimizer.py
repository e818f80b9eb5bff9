import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from alphagat.config import NetworkConfig
from alphagat.games import make_game
from alphagat.learner.optimizer import OPTIMIZERS, is_matrix, make_optimizer, make_schedule
from alphagat.networks import make_network

RATE, DECAY = 0.01, 0.1
PARAMS = {
    "kernel": np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]]),
    "bias": np.array([0.5, -1.0]),
    "relation_bias": np.array([[2.0, 1.0], [0.5, -0.5]]),
}


def gradients(step):
    generator = np.random.default_rng(step)
    return {name: generator.normal(size=x.shape) * 0.1 for name, x in PARAMS.items()}


def on_device(tree):
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), tree)


@functools.cache
def run(name, num_steps, decay=DECAY, clip_norm=1e9):
    optimizer = make_optimizer(name=name, schedule=lambda _: RATE, weight_decay=decay, clip_norm=clip_norm)
    params = on_device(PARAMS)
    state, update = optimizer.init(params), jax.jit(optimizer.update)
    for step in range(num_steps):
        updates, state = update(on_device(gradients(step)), state, params)
        params = optax.apply_updates(params, updates)
    return params


def slow_lamb(name, num_steps):
    """Follows You et al. 2020, algorithm 2, in float64, with trust ratio and decay for matrices only."""
    x = PARAMS[name].copy()
    first, second = np.zeros_like(x), np.zeros_like(x)
    for step in range(num_steps):
        gradient = gradients(step)[name]
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        ratio = first / (1 - 0.9 ** (step + 1)) / (np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-6)
        if name == "kernel":
            direction = ratio + DECAY * x
            ratio = np.linalg.norm(x) / np.linalg.norm(direction) * direction
        x -= RATE * ratio
    return x


@pytest.mark.parametrize("name", PARAMS)
def test_lamb_equals_its_definition(name):
    np.testing.assert_allclose(run("lamb", 4)[name], slow_lamb(name, 4), rtol=1e-5)


def test_muon_makes_the_updates_of_matrices_orthogonal():
    """Jordan et al. 2024: after five Newton-Schulz iterations, singular values are near 1."""
    left, _, right = np.linalg.svd(gradients(0)["kernel"], full_matrices=False)
    change = (run("muon", 1, decay=0.0)["kernel"] - PARAMS["kernel"]) / (-RATE * 0.2 * np.sqrt(3))
    np.testing.assert_allclose(change, left @ right, atol=0.2)
    np.testing.assert_allclose(np.linalg.svd(change)[1], 1, atol=0.35)


@pytest.mark.parametrize("name", ["bias", "relation_bias"])
def test_muon_updates_other_parameters_like_adam_at_the_scale_of_matrices(name):
    optimizer, params = optax.nadam(0.2 * RATE), on_device(PARAMS[name])
    state = optimizer.init(params)
    for step in range(4):
        updates, state = optimizer.update(on_device(gradients(step)[name]), state, params)
        params = optax.apply_updates(params, updates)
    np.testing.assert_allclose(run("muon", 4)[name], params, rtol=1e-5)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_only_matrices_decay(optimizer):
    with_decay, without = run(optimizer, 2), run(optimizer, 2, decay=0.0)
    changed = {name: bool((with_decay[name] != without[name]).any()) for name in PARAMS}
    assert changed == {"kernel": True, "bias": False, "relation_bias": False}


@pytest.mark.parametrize("network", ["gat", "resnet"])
def test_is_matrix_on_the_networks(network):
    game = make_game("tic_tac_toe")
    fields = NetworkConfig(name=network, width=8, num_blocks=1, num_heads=2)
    module = make_network(game.topology, **{name: getattr(fields, name) for name in fields.__dataclass_fields__})
    shapes = jax.eval_shape(module.init, jax.random.key(0), jnp.zeros((1, 9, game.num_features)))
    for path, matrix in jax.tree_util.tree_leaves_with_path(is_matrix(shapes)):
        name = jax.tree_util.keystr(path)
        assert matrix == ("kernel" in name or "relation_weights" in name)


@pytest.mark.parametrize("clip_norm", [0.01, 1e3])
def test_clips_the_global_norm(clip_norm):
    optimizer = make_optimizer(name="sgd", schedule=lambda _: 1.0, weight_decay=0.0, clip_norm=clip_norm)
    gradient = gradients(0)
    updates, _ = optimizer.update(on_device(gradient), optimizer.init(on_device(PARAMS)), on_device(PARAMS))
    norm = np.sqrt(sum((x**2).sum() for x in gradient.values()))
    scale = min(1.0, clip_norm / norm)
    for name in PARAMS:
        np.testing.assert_allclose(updates[name], -scale * gradient[name], rtol=1e-5)


def test_schedule():
    schedule = make_schedule(learning_rate=0.4, warmup_steps=10, total_steps=110, final_learning_rate_fraction=0.25)
    expected = {0: 0.0, 5: 0.2, 10: 0.4, 35: 0.1 + 0.3 * (1 + np.cos(np.pi / 4)) / 2, 60: 0.25, 110: 0.1, 500: 0.1}
    assert {step: float(schedule(step)) for step in expected} == pytest.approx(expected, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize(("warmup_steps", "total_steps"), [(0, 1), (50, 1), (50, 10), (10, 10), (0, 100)])
def test_a_schedule_shorter_than_its_warmup(warmup_steps, total_steps):
    schedule = make_schedule(
        learning_rate=0.4, warmup_steps=warmup_steps, total_steps=total_steps, final_learning_rate_fraction=0.5
    )
    rates = np.array([float(schedule(step)) for step in range(total_steps + 2)])
    assert np.isfinite(rates).all()
    assert rates.max() == pytest.approx(0.4)
    assert rates[total_steps:] == pytest.approx(0.2)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_fits_a_line(name):
    inputs = jax.random.normal(jax.random.key(0), (64, 3))
    outputs = inputs @ jnp.array([[1.0], [-2.0], [0.5]]) + 0.3
    rate = 0.2 if name == "muon" else 0.05  # its updates have a fifth of the rate per entry
    schedule = make_schedule(learning_rate=rate, warmup_steps=5, total_steps=200, final_learning_rate_fraction=0.05)
    optimizer = make_optimizer(name=name, schedule=schedule, weight_decay=1e-5, clip_norm=1.0)

    def loss(params):
        return jnp.square(inputs @ params["kernel"] + params["bias"][None] - outputs).mean()

    @functools.partial(jax.jit, static_argnums=1)
    def fit(params, num_steps):
        def body(_, carry):
            params, state = carry
            updates, state = optimizer.update(jax.grad(loss)(params), state, params)
            return optax.apply_updates(params, updates), state

        return jax.lax.fori_loop(0, num_steps, body, (params, optimizer.init(params)))[0]

    start = {"kernel": jnp.full((3, 1), 0.1), "bias": jnp.zeros(1)}
    assert loss(fit(start, 200)) < 0.01 * loss(start)
