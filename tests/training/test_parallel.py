"""Every sharding of a network trains the same network as one device."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from alphagat.networks import partition
from alphagat.runtime import sharding
from alphagat.training.iteration import make_find_gradients, make_iteration, run_iteration
from alphagat.training.setup import Setup, make_setups
from alphagat.training.state import init_state, params_shardings, placed_shapes, state_shardings
from tests.training.tiny import run_of, tiny_config

ITERATIONS = 3
Way = tuple[int, int, int, bool]  # data, model, stage, fsdp
ALONE: Way = (1, 1, 1, False)
WAYS: dict[str, Way] = {  # test_iteration covers data parallelism
    "model": (4, 2, 1, False),
    "slices": (4, 1, 1, True),
    "model and slices": (2, 2, 1, True),
    "stage": (2, 1, 2, False),
    "all": (2, 2, 2, True),
}


def setup_for(data: int, model: int, stage: int, fsdp: bool, optimizer: str = "sgd", board: str = "hex:2") -> Setup:
    """Sets up a run. Optimizers that divide by the gradient, such as LAMB, would amplify rounding errors."""
    config = tiny_config()
    config.boards = (board,)
    config.network.num_blocks, config.network.blocks = 3, ("mixing", "mixing+attention")
    config.mesh.data, config.mesh.model, config.mesh.stage, config.mesh.fsdp = data, model, stage, fsdp
    config.learner.optimizer = optimizer
    return make_setups(config)[0]


def play(way: Way, iterations: int = ITERATIONS, optimizer: str = "sgd", board: str = "hex:2"):
    setup, mesh = setup_for(*way, optimizer, board), sharding.make_mesh(*way[:3])
    state, metrics = init_state(run_of(setup, mesh)), {}
    program = make_iteration(setup, mesh)
    for _ in range(iterations):
        state, metrics, _ = run_iteration(program, state)
    for leaf, place in zip(
        jax.tree.leaves(state), jax.tree.leaves(state_shardings(mesh, state, fsdp=way[3])), strict=True
    ):
        assert leaf.sharding.is_equivalent_to(place, leaf.ndim)
    return setup, mesh, state, jax.device_get(metrics)


@pytest.fixture(scope="module")
def alone():
    return play(ALONE)


@pytest.fixture
def slice_everything(monkeypatch):
    monkeypatch.setattr(partition, "_SMALLEST_SLICED", 8)


@pytest.mark.usefixtures("slice_everything")
def test_sharded_training_equals_one_device(alone):
    """Compares parameters, optimizer state and metrics after the updates of two iterations, and games exactly."""
    _, _, state, metrics = play(WAYS["all"])
    chex.assert_trees_all_close(alone[2].train, state.train, rtol=1e-4, atol=1e-6)
    for name, value in alone[3].items():
        np.testing.assert_allclose(value, metrics[name], rtol=1e-3, err_msg=name)
    np.testing.assert_array_equal(alone[2].boards[0].games.state.cells, state.boards[0].games.state.cells)


@pytest.mark.usefixtures("slice_everything")
def test_sharded_training_equals_one_device_where_edges_vary():
    (_, _, alone, before), (_, _, sharded, after) = (play(way, board="tsp:5") for way in (ALONE, WAYS["all"]))
    chex.assert_trees_all_close(alone.train, sharded.train, rtol=1e-4, atol=1e-6)
    assert before.keys() == after.keys() >= {"train/policy_loss"}
    for name, value in before.items():
        np.testing.assert_allclose(value, after[name], rtol=1e-3, err_msg=name)
    np.testing.assert_array_equal(alone.boards[0].games.state.tour, sharded.boards[0].games.state.tour)


@pytest.mark.usefixtures("slice_everything")
def test_muon_orthogonalises_sharded_matrices_like_whole_ones():
    (_, _, alone, _), (_, _, sharded, _) = (play(way, optimizer="muon") for way in (ALONE, WAYS["all"]))
    leaves = zip(jax.tree_util.tree_leaves_with_path(alone.train), jax.tree.leaves(sharded.train), strict=True)
    for (path, leaf), other in leaves:
        name = jax.tree_util.keystr(path)
        if "['policy']['logit']['bias']" not in name:  # the gradient of a bias of all logits is only rounding
            np.testing.assert_allclose(leaf, other, rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.usefixtures("slice_everything")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_sharded_gradients_equal_one_device(alone, way: Way):
    """Compares gradients before the optimizer, which could hide a constant factor."""
    _, _, state, _ = alone
    expected = find_gradients(ALONE, state)
    chex.assert_trees_all_close(expected, find_gradients(way, state), rtol=1e-4, atol=1e-6)


def find_gradients(way: Way, state):
    setup, mesh = setup_for(*way), sharding.make_mesh(*way[:3])
    state = jax.device_put(jax.device_get(state), state_shardings(mesh, state, fsdp=way[3]))
    keys = jax.vmap(lambda group: jax.random.fold_in(jax.random.key(5), group))(state.boards[0].groups)
    find = jax.jit(make_find_gradients(setup, mesh))
    return jax.device_get(find(state.train.params, jnp.float32(1), state.boards[0], keys))


@pytest.mark.usefixtures("slice_everything")
def test_parameters_are_sharded():
    """Heads, groups and hidden units are split along `model`; parameters and momentum are sliced along `data`."""
    for way, divisor in (((1, 2, 1, False), 2), ((4, 1, 1, True), 4), ((1, 1, 2, False), 2), ((2, 2, 2, True), 8)):
        run = run_of(setup_for(*way), sharding.make_mesh(*way[:3]))
        kernels = [
            leaf
            for path, leaf in jax.tree_util.tree_leaves_with_path(placed_shapes(run).train)
            if any(name in jax.tree_util.keystr(path) for name in ("query_key_value", "mixing_in"))
        ]
        assert len(kernels) == 2 * 3  # parameters and momentum of three blocks
        for kernel in kernels:
            assert math.prod(kernel.sharding.shard_shape(kernel.shape)) == kernel.size // divisor


@pytest.mark.parametrize(
    ("data", "stage", "axes"),
    [(2, 2, ("stage", "data")), (2, 3, "data"), (3, 2, "stage"), (3, 1, None)],
)
def test_a_leaf_is_sliced_over_the_axes_that_divide_it(data: int, stage: int, axes):
    mesh, leaf = sharding.make_mesh(data, 1, stage), jax.ShapeDtypeStruct((50, 100), jnp.float32)
    place = params_shardings(mesh, leaf, fsdp=True)
    assert place.is_equivalent_to(NamedSharding(mesh, PartitionSpec(None, axes)), 2)


def test_half_precision_trains_with_a_loss_scale():
    config = tiny_config()
    config.network.precision, config.mesh.data = "float16", 2
    (setup,), mesh = make_setups(config), sharding.make_mesh(2)
    state, program = init_state(run_of(setup, mesh)), make_iteration(setup, mesh)
    for _ in range(ITERATIONS):
        state, metrics, _ = run_iteration(program, state)
    assert {leaf.dtype for leaf in jax.tree.leaves(state.train.params)} == {np.dtype(np.float32)}
    assert np.isfinite(metrics["train/policy_loss"])
    assert int(state.train.step) + int(metrics["train/skipped"]) == 2 * 2  # updates of two iterations
    assert int(state.train.step) > 0
    assert metrics["train/loss_scale"] > 1
