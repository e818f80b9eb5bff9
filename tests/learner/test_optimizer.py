import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from alphagat.config import NetworkConfig
from alphagat.games import make_game
from alphagat.learner import optimizer as optimizer_module
from alphagat.learner.optimizer import (
    MUON_RMS,
    OPTIMIZERS,
    is_matrix,
    make_optimizer,
    make_schedule,
    orthogonalize,
)
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


def follow(optimizer, params, all_gradients):
    state, update = optimizer.init(params), jax.jit(optimizer.update)
    for gradient in all_gradients:
        updates, state = update(gradient, state, params)
        params = optax.apply_updates(params, updates)
    return params


@functools.cache
def run(name, num_steps, decay=DECAY, clip_norm=1e9):
    optimizer = make_optimizer(name=name, schedule=lambda _: RATE, weight_decay=decay, clip_norm=clip_norm)
    return follow(optimizer, on_device(PARAMS), [on_device(gradients(step)) for step in range(num_steps)])


def adam_ratios(name, num_steps, epsilon):
    """Yields Adam's direction at each step (Kingma and Ba 2015, algorithm 1), in float64."""
    first = second = 0.0
    for step in range(num_steps):
        gradient = gradients(step)[name]
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        yield first / (1 - 0.9 ** (step + 1)) / (np.sqrt(second / (1 - 0.999 ** (step + 1))) + epsilon)


def slow_lamb(name, num_steps):
    """Follows You et al. 2020, algorithm 2, in float64, with trust ratio and decay for matrices only."""
    x = PARAMS[name].copy()
    for ratio in adam_ratios(name, num_steps, 1e-6):
        if name == "kernel":
            direction = ratio + DECAY * x
            ratio = np.linalg.norm(x) / np.linalg.norm(direction) * direction
        x -= RATE * ratio
    return x


def slow_lars(name, num_steps):
    """Follows You et al. 2017, algorithm 1, in float64, with trust ratio and decay for matrices only."""
    x, velocity = PARAMS[name].copy(), 0.0
    for step in range(num_steps):
        direction = gradients(step)[name]
        if name == "kernel":
            direction = direction + DECAY * x
            direction = np.linalg.norm(x) / np.linalg.norm(direction) * direction  # of the sum, as in Optax
        velocity = 0.9 * velocity + RATE * direction
        x -= velocity
    return x


def slow_adamw(name, num_steps):
    """Follows Loshchilov and Hutter 2019, algorithm 2, in float64, with decay for matrices only."""
    x = PARAMS[name].copy()
    for ratio in adam_ratios(name, num_steps, 1e-8):
        x -= RATE * (ratio + (DECAY * x if name == "kernel" else 0))
    return x


@pytest.mark.parametrize("name", PARAMS)
@pytest.mark.parametrize(("optimizer", "slow"), [("lamb", slow_lamb), ("lars", slow_lars), ("adamw", slow_adamw)])
def test_optimizers_equal_their_definitions(optimizer, slow, name):
    np.testing.assert_allclose(run(optimizer, 4)[name], slow(name, 4), rtol=1e-5)


def test_muon_makes_the_updates_of_matrices_orthogonal():
    """Jordan et al. 2024: after five Newton-Schulz iterations, singular values are near 1."""
    left, _, right = np.linalg.svd(gradients(0)["kernel"], full_matrices=False)
    change = (run("muon", 1, decay=0.0)["kernel"] - PARAMS["kernel"]) / (-RATE * 0.2 * np.sqrt(3))
    np.testing.assert_allclose(change, left @ right, atol=0.2)
    np.testing.assert_allclose(np.linalg.svd(change)[1], 1, atol=0.35)


KERNEL_SHAPES = {
    "square": (6, 6),
    "wide": (4, 6),
    "tall": (6, 4),
    "another_tall": (6, 4),
    "heads": (2, 3, 4),  # inputs of two axes
    "column": (6, 1),
    "not_thin": (18, 20),
}


@pytest.mark.parametrize("max_batched_size", [0, 24, 1 << 16])
def test_muon_in_batches_equals_optax(max_batched_size, monkeypatch):
    """Compares four updates with Optax's Muon, which orthogonalizes one kernel after the other."""

    def dimensions(params):
        axes = optax.contrib.MuonDimensionNumbers
        return jax.tree.map(
            lambda matrix, x: axes(tuple(range(x.ndim - 1)), x.ndim - 1) if matrix else None, is_matrix(params), params
        )

    monkeypatch.setattr(optimizer_module, "MAX_BATCHED_SIZE", max_batched_size)
    schedule = optax.linear_schedule(RATE, RATE / 2, 4)
    ours = OPTIMIZERS["muon"](schedule, DECAY)
    optaxs = optax.contrib.muon(
        schedule,
        weight_decay=DECAY,
        weight_decay_mask=is_matrix,
        muon_weight_dimension_numbers=dimensions,
        consistent_rms=MUON_RMS,
        adam_learning_rate=lambda step: MUON_RMS * schedule(step),
    )
    generator = np.random.default_rng(0)

    def draw():
        return {
            name: {"kernel": generator.normal(size=shape), "bias": generator.normal(size=shape[-1])}
            for name, shape in KERNEL_SHAPES.items()
        }

    params = on_device(draw())
    all_gradients = [on_device(draw()) for _ in range(4)]
    found, expected = (follow(each, params, all_gradients) for each in (ours, optaxs))
    large = found.pop("not_thin"), expected.pop("not_thin")  # some of its many values are near 0
    chex.assert_trees_all_close(*large, rtol=1e-4, atol=1e-6)
    chex.assert_trees_all_close(found, expected, rtol=1e-4)


def test_muon_orthogonalizes_small_kernels_of_one_shape_in_one_batch():
    """A Newton-Schulz step, which the program repeats in a loop, has three products."""
    shapes = [(32, 32), (4, 8, 32), (20, 24), (24, 20), (4, 24), (1, 64), (8, 70), (16, 128)]
    program = jax.jit(orthogonalize).lower([jnp.ones(shape) for shape in shapes]).as_text()
    assert program.count("dot_general") == 4 * 3  # 32 x 32, 20 x 24, and thin ones padded to 16 x 64 and 16 x 128


@pytest.mark.parametrize("name", ["bias", "relation_bias"])
def test_muon_updates_other_parameters_like_adam_at_the_scale_of_matrices(name):
    all_gradients = [on_device(gradients(step)[name]) for step in range(4)]
    expected = follow(optax.nadam(0.2 * RATE), on_device(PARAMS[name]), all_gradients)
    np.testing.assert_allclose(run("muon", 4)[name], expected, rtol=1e-5)


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


@pytest.mark.parametrize("as_one_vector", [False, True])
@pytest.mark.parametrize("clip_norm", [0.01, 1e3])
def test_clips_the_global_norm(clip_norm, as_one_vector):
    optimizer = make_optimizer(
        name="sgd", schedule=lambda _: 1.0, weight_decay=0.0, clip_norm=clip_norm, as_one_vector=as_one_vector
    )
    gradient = gradients(0)
    updates, _ = optimizer.update(on_device(gradient), optimizer.init(on_device(PARAMS)), on_device(PARAMS))
    norm = np.sqrt(sum((x**2).sum() for x in gradient.values()))
    scale = min(1.0, clip_norm / norm)
    for name in PARAMS:
        np.testing.assert_allclose(updates[name], -scale * gradient[name], rtol=1e-5)


@pytest.mark.parametrize("as_one_vector", [False, True])
def test_the_clip_sums_over_one_vector_or_over_each_parameter(as_one_vector):
    optimizer = make_optimizer(
        name="sgd", schedule=lambda _: 1.0, weight_decay=0.0, clip_norm=1.0, as_one_vector=as_one_vector
    )
    params = on_device(PARAMS)
    program = jax.jit(optimizer.update).lower(params, optimizer.init(params), params).as_text()
    assert program.count("stablehlo.reduce(") == (1 if as_one_vector else len(PARAMS))


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
