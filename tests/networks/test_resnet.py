"""The residual baseline reads the same features as the GAT, including the borders of Hex."""

import functools
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.games import make_game
from alphagat.games.batches import compile_init
from alphagat.networks import make_network, resnet
from alphagat.networks.resnet import Convolution, ResidualBlock


@functools.cache
def make(name: str, network: str = "resnet", num_blocks: int = 1):
    game = make_game(name)
    network = make_network(
        game.topology, name=network, backend="dense", width=8, num_blocks=num_blocks, num_heads=1, mlp_ratio=1
    )
    states = compile_init(game)(jax.random.split(jax.random.key(0), 3))
    nodes = jax.jit(jax.vmap(game.observe))(states)
    generator = np.random.default_rng(0)
    shapes = jax.eval_shape(network.init, jax.random.key(1), nodes)

    def draw(path, leaf):  # norm scales stay near 1: near 0, a bias alone could hold a ReLU at 0
        return generator.normal("scale" in jax.tree_util.keystr(path), 0.2, leaf.shape).astype(leaf.dtype)

    params = jax.tree_util.tree_map_with_path(draw, shapes)
    return game, network, states, nodes, params


@pytest.mark.parametrize(
    ("name", "network", "num_blocks"),
    [
        *((name, "resnet", 1) for name in ("connect_four", "hex:3", "breakthrough:5")),
        ("connect_four", "resnet_pool", 2),
    ],
)
def test_shapes_and_gradients(name: str, network: str, num_blocks: int):
    game, network, _, nodes, params = make(name, network, num_blocks)
    noisy = nodes + jax.random.normal(jax.random.key(2), nodes.shape)

    def loss(params, nodes):
        logits, value = network.apply(params, nodes)
        assert logits.shape == (3, game.num_actions)
        assert value.shape == (3,)
        return (jnp.sin(logits) * jnp.arange(1, 1 + logits.size).reshape(logits.shape)).sum() + value.sum()

    by_params, by_nodes = jax.jit(jax.grad(loss, argnums=(0, 1)))(params, noisy)
    for path, gradient in jax.tree_util.tree_leaves_with_path(by_params):
        assert np.abs(gradient).max() > 1e-4, jax.tree_util.keystr(path)
    assert (jnp.abs(by_nodes).max(-1) > 0).all()


@pytest.mark.parametrize("name", ["connect_four", "breakthrough:5"])
def test_no_head_is_dead(name: str):
    """The input of a head is never negative: without a norm, negative weights would hold its ReLUs at 0."""
    _, network, _, nodes, params = make(name)
    noisy = nodes + jax.random.normal(jax.random.key(2), nodes.shape)
    weights = jax.tree.map(lambda x: x, params["params"])
    for convolution in (weights["value_conv"], weights["policy"]["conv"]):
        convolution["kernel"] = -abs(convolution["kernel"])
    logits, value = jax.jit(network.apply)({"params": weights}, noisy)
    assert (jnp.ptp(logits, axis=0) > 1e-4).any()
    assert jnp.ptp(value) > 1e-4


def activate(cells: np.ndarray, norm: dict, axes: int | tuple[int, ...] = -1) -> np.ndarray:
    centred = cells - cells.mean(axes, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(axes, keepdims=True) + 1e-6)
    return np.maximum(normed * norm["scale"] + norm["bias"], 0)


def convolve(cells: np.ndarray, layer: dict) -> np.ndarray:
    rows, columns = cells.shape[1:3]
    padded = np.pad(cells, ((0, 0), (1, 1), (1, 1), (0, 0)))
    shifts = ((down, right) for down in range(3) for right in range(3))
    return sum(padded[:, d : d + rows, r : r + columns] @ layer["kernel"][d, r] for d, r in shifts)


def dense(inputs: np.ndarray, layer: dict) -> np.ndarray:
    return inputs @ layer["kernel"] + layer.get("bias", 0)


def test_the_network_equals_its_definition():
    """In numpy, on a board with nodes outside the grid."""
    _, network, _, _, params = make("hex:3", num_blocks=2)
    nodes = np.random.default_rng(2).normal(size=(3, 9 + 4, 9)).astype(np.float32)
    layers, board = params["params"], (1, 2, 3)
    hidden = convolve(nodes[:, :9].reshape(3, 3, 3, 9), layers["stem"])
    hidden = hidden + dense(nodes[:, 9:].reshape(3, -1), layers["outside"])[:, None, None]
    for block in (layers["block_0"], layers["block_1"]):
        branch = convolve(activate(hidden, block["norm_0"]), block["conv_0"])
        hidden = hidden + convolve(activate(branch, block["norm_1"]), block["conv_1"])
    hidden = activate(hidden, layers["norm"])
    value = activate(dense(hidden, layers["value_conv"]), layers["value_norm"], board).reshape(3, -1)
    value = np.tanh(dense(np.maximum(dense(value, layers["value_hidden"]), 0), layers["value"])[:, 0])
    policy = layers["policy"]
    logits = dense(activate(dense(hidden, policy["conv"]), policy["norm"], board).reshape(3, -1), policy["logits"])
    for one, other in zip(jax.jit(network.apply)(params, nodes), (logits, value), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_global_pooling_equals_its_definition():
    """The block with pooling in float64 numpy, given its parameters."""
    block = ResidualBlock(jnp.dtype("float32"), num_pooled=3)
    cells = np.random.default_rng(0).normal(size=(2, 4, 6, 7)).astype(np.float32)
    shapes = jax.eval_shape(block.init, jax.random.key(0), cells)
    generator = np.random.default_rng(1)
    params = jax.tree.map(lambda leaf: generator.normal(0.5, 0.5, leaf.shape), shapes)["params"]
    branch = convolve(activate(cells.astype(np.float64), params["norm_0"]), params["conv_0"])
    pooled, branch = activate(branch[..., :3], params["pool_norm"]), branch[..., 3:]
    summary = np.concatenate([pooled.mean(axis=(1, 2)), pooled.max(axis=(1, 2))], axis=-1)
    branch = branch + dense(summary, params["pool"])[:, None, None]
    expected = cells + convolve(activate(branch, params["norm_1"]), params["conv_1"])
    np.testing.assert_allclose(block.apply({"params": params}, cells), expected, rtol=1e-4, atol=1e-4)


def configured(name: str, num_features: int, **options: Any) -> tuple[Any, Any, np.ndarray]:
    """Returns a network with other options, random parameters, and features."""
    topology = make_game(name).topology
    network = make_network(
        topology, name="resnet", backend="dense", width=8, num_blocks=2, num_heads=1, mlp_ratio=1, **options
    )
    nodes = np.random.default_rng(0).normal(size=(4, topology.num_nodes, num_features)).astype(np.float32)
    return network, network.init(jax.random.key(0), nodes), nodes


def test_rematerialization_keeps_the_activations_of_no_block():
    def gradient(remat: bool) -> Any:
        network, params, nodes = configured("connect_four", 9, remat=remat)
        program = jax.jit(jax.grad(lambda params: network.apply(params, nodes)[1].sum()))
        assert ("optimization_barrier" in program.lower(params).as_text()) == remat
        return program(params)

    for one, other in zip(*map(jax.tree.leaves, map(gradient, (False, True))), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_half_precision_rounds_the_blocks_and_not_the_outputs():
    network, params, nodes = configured("connect_four", 9)
    half, _, _ = configured("connect_four", 9, precision="bfloat16")
    exact, rounded = network.apply(params, nodes), half.apply(params, nodes)
    for one, other in zip(exact, rounded, strict=True):
        assert other.dtype == jnp.float32
        assert 1e-4 < jnp.abs(one - other).max() < 0.3


def test_the_value_of_points_is_a_distribution_over_the_support():
    game = make_game("2048:3")
    assert game.value_support is not None
    network, params, nodes = configured("2048:3", game.num_features, value_support=game.value_support)
    assert network.apply(params, nodes)[1].shape == (4, len(game.value_support))


def test_every_second_block_pools_a_third_of_the_channels():
    *_, params = make("connect_four", "resnet_pool", 2)
    shapes = {name: "pool" in params["params"][name] for name in ("block_0", "block_1")}
    assert shapes == {"block_0": False, "block_1": True}
    assert params["params"]["block_1"]["pool"]["kernel"].shape == (2 * 3, 8 - 3)


def test_hex_borders_identify_the_player_to_move():
    """On an empty board only the features of the borders differ between the players."""
    game, network, states, nodes, params = make("hex:3")
    other = jax.vmap(game.observe)(states.replace(current_player=1 - states.current_player))
    np.testing.assert_array_equal(nodes[:, :9], other[:, :9])
    apply = jax.jit(network.apply)
    logits, value = apply(params, nodes)
    other_logits, other_value = apply(params, other)
    assert (jnp.abs(logits - other_logits).max(1) > 1e-4).all()
    assert (jnp.abs(value - other_value) > 1e-4).all()


def test_examples_of_a_batch_are_independent():
    """The network has no batch statistics."""
    _, network, _, nodes, params = make("connect_four")
    noisy = nodes + jax.random.normal(jax.random.key(2), nodes.shape)
    apply = jax.jit(network.apply)
    logits, value = apply(params, noisy)
    others = noisy.at[1:].mul(-3)
    alone_logits, alone_value = apply(params, others)
    np.testing.assert_allclose(alone_logits[:1], logits[:1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(alone_value[:1], value[:1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "num_planes"), [("breakthrough:5", 3), ("gardner_chess", 8 * 4 + 8 + 9), ("pgx:animal_shogi", 11)]
)
def test_a_move_is_read_at_its_origin_from_the_plane_of_its_step(name: str, num_planes: int):
    game, network, _, nodes, params = make(name)
    noisy = nodes + jax.random.normal(jax.random.key(2), nodes.shape)
    apply = functools.partial(network.apply, capture_intermediates=lambda module, _: module.name == "planes")
    (logits, _), seen = jax.jit(apply)(params, noisy)
    (planes,) = seen["intermediates"]["policy"]["planes"]["__call__"]
    rows, columns = game.topology.grid_shape
    assert planes.shape == (3, rows, columns, num_planes)
    by_step = {}
    for action, (sender, receiver, kind) in enumerate(
        zip(game.topology.action_senders, game.topology.action_receivers, game.topology.action_kinds)
    ):
        (row, column), (to_row, to_column) = divmod(int(sender), columns), divmod(int(receiver), columns)
        (plane,) = np.flatnonzero(np.asarray(planes[0, row, column] == logits[0, action]))
        np.testing.assert_array_equal(logits[:, action], planes[:, row, column, plane])
        by_step.setdefault((to_row - row, to_column - column, int(kind)), set()).add(int(plane))
    assert all(len(found) == 1 for found in by_step.values())
    assert len({*map(tuple, by_step.values())}) == len(by_step) == num_planes


def test_an_exported_convolution_fits_each_platform():
    module, cells = Convolution(5, jnp.dtype("float32")), jnp.zeros((2, 4, 6, 3))
    apply = jax.jit(functools.partial(module.apply, module.init(jax.random.key(0), cells)))
    programs = {
        platforms: jax.export.export(apply, platforms=platforms)(cells).mlir_module()
        for platforms in (("cpu",), ("cuda",), ("cpu", "cuda"))
    }
    found = {platforms: "stablehlo.convolution" in text for platforms, text in programs.items()}
    assert found == {("cpu",): False, ("cuda",): True, ("cpu", "cuda"): True}


@pytest.mark.parametrize("form", [resnet.multiply_patches, resnet.convolve])
def test_both_convolutions_equal_flax(form: Callable, monkeypatch):
    """Compares values, gradients and initial parameters."""
    monkeypatch.setattr(resnet, "multiply_patches", form)
    ours = Convolution(5, jnp.dtype("float32"))
    theirs = nn.Conv(5, (3, 3), use_bias=False)
    cells = np.random.default_rng(0).normal(size=(2, 4, 6, 3)).astype(np.float32)
    params = theirs.init(jax.random.key(0), cells)
    jax.tree.map(np.testing.assert_array_equal, ours.init(jax.random.key(0), cells), params)

    def values_and_gradients(module):
        def loss(params, cells):
            values = module.apply(params, cells)
            return jnp.sin(values).sum(), values

        return jax.grad(loss, argnums=(0, 1), has_aux=True)(params, cells)

    found, expected = (values_and_gradients(module) for module in (ours, theirs))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5), found, expected)
