"""The graph attention network: equal backends, independence of board size, and no scatter."""

import functools
import re
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.games import make_game
from alphagat.graphs.topology import Topology
from tests.networks.boards import draw_params, irregular_topology, ring_topology, small_gat

TOPOLOGIES = {
    "hex:3": make_game("hex:3").topology,
    "connect_four": make_game("connect_four").topology,
    "irregular": irregular_topology(num_nodes=9, num_actions=6, seed=2),
}
BATCH, FEATURES = 2, 5
SCATTER = re.compile(r"stablehlo\.scatter|\bscatter\(")  # matches the operation, not a name in the program


def gat(topology: Topology, backend: str = "dense", precision: str = "float32", remat: bool = False):
    return small_gat(topology, ("mixing+attention",), 1, backend=backend, precision=precision, remat=remat)


def draw_nodes(topology: Topology, num_features: int = FEATURES, batch: int = BATCH) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(batch, topology.num_nodes, num_features)).astype(np.float32)


def shapes_for(topology: Topology, num_features: int = FEATURES):
    return jax.eval_shape(gat(topology).init, jax.random.key(0), draw_nodes(topology, num_features))


def params_for(topology: Topology, num_features: int = FEATURES, dtype: type = np.float32):
    return draw_params(gat(topology), draw_nodes(topology, num_features), dtype)


@functools.cache
def compile_apply(topology: Topology):
    return jax.jit(gat(topology).apply)


class Differentiated(NamedTuple):
    outputs: Any
    by_params: Any
    by_nodes: jax.Array
    program: str  # as traced and as compiled by XLA


@functools.cache
def differentiate(
    name: str, backend: str, dtype: type = np.float32, precision: str = "", remat: bool = False
) -> Differentiated:
    """Returns outputs and gradients of a loss that weighs each output differently, so that errors cannot cancel."""
    topology, precision = TOPOLOGIES[name], precision or np.dtype(dtype).name

    def loss(params, nodes):
        logits, value = gat(topology, backend, precision, remat).apply(params, nodes)
        weights = np.arange(1, 1 + logits.size, dtype=dtype).reshape(logits.shape)
        return (jnp.sin(logits) * weights).sum() + (value**2).sum(), (logits, value)

    with jax.enable_x64(dtype == np.float64):
        inputs = params_for(topology, dtype=dtype), draw_nodes(topology).astype(dtype)
        lowered = jax.jit(jax.grad(loss, argnums=(0, 1), has_aux=True)).lower(*inputs)
        compiled = lowered.compile()
        (by_params, by_nodes), outputs = jax.tree.map(np.asarray, compiled(*inputs))
    return Differentiated(outputs, by_params, by_nodes, lowered.as_text() + compiled.as_text())


@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [*((name, np.float32, 1e-4) for name in TOPOLOGIES), ("irregular", np.float64, 1e-10)],
)
def test_backends_agree(name: str, dtype: type, tolerance: float):
    """Compares outputs and gradients of parameters and features; to 1e-10 in float64, so the formulas are equal."""
    dense, jraph = (differentiate(name, backend, dtype)[:3] for backend in ("dense", "jraph"))
    for one, other in zip(jax.tree.leaves(dense), jax.tree.leaves(jraph), strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * max(np.abs(one).max(), 1))


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_every_parameter_and_node_gets_a_gradient(name: str):
    _, by_params, by_nodes, _ = differentiate(name, "dense")
    for path, gradient in jax.tree_util.tree_leaves_with_path(by_params):
        assert np.abs(gradient).max() > 1e-4, jax.tree_util.keystr(
            path
        )  # a parameter without effect has rounding errors
    assert (np.abs(by_nodes).max(-1) > 0).all()


def exponentials(jaxpr: Any) -> list[str]:
    """Returns the types of the inputs of all exponentials in a program."""
    found = [str(each.invars[0].aval.dtype) for each in jaxpr.eqns if each.primitive.name in ("exp", "exp2")]
    for each in jaxpr.eqns:
        for value in each.params.values():
            inner = getattr(value, "jaxpr", value)
            found += exponentials(inner) if hasattr(inner, "eqns") else []
    return found


@pytest.mark.parametrize("backend", ["dense", "jraph"])
def test_softmaxes_are_float32_in_half_precision(backend: str):
    """Those of attention, and of the pooling of the value head."""
    topology = TOPOLOGIES["irregular"]
    network = gat(topology, backend, "bfloat16")
    types = exponentials(jax.make_jaxpr(network.apply)(params_for(topology), draw_nodes(topology)).jaxpr)
    assert len(types) >= 2
    assert set(types) == {"float32"}


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_no_scatter_in_the_dense_backend(name: str):
    assert not SCATTER.search(differentiate(name, "dense").program)


def test_the_jraph_backend_has_a_scatter():
    assert SCATTER.search(differentiate("hex:3", "jraph").program)


@pytest.mark.parametrize(
    ("trained_on", "played_on"),
    [
        ("hex:5", ["hex:7", "hex:9", "hex:5:swap"]),
        ("connect_four", ["mnk:5x9x4:gravity", "gomoku:9"]),
    ],
)
def test_parameters_fit_every_board_of_a_family(trained_on: str, played_on: list[str]):
    game = make_game(trained_on)
    params = params_for(game.topology, game.num_features)
    for name in played_on:
        other = make_game(name)
        logits, value = compile_apply(other.topology)(params, draw_nodes(other.topology, other.num_features))
        assert logits.shape == (2, other.num_actions)
        assert value.shape == (2,)
        assert np.isfinite(logits).all()
        assert (np.abs(value) < 1).all()
        wanted = shapes_for(other.topology, other.num_features)
        assert jax.tree.map(jnp.shape, wanted) == jax.tree.map(jnp.shape, params)


def test_an_automorphism_permutes_logits_and_keeps_the_value():
    """Rotates a ring of equal edges; the actions are edges and rotate with it."""
    topology = ring_topology(6)
    nodes, params = draw_nodes(topology), params_for(topology)
    logits, value = compile_apply(topology)(params, nodes)
    turned_logits, turned_value = compile_apply(topology)(params, np.roll(nodes, 2, axis=1))
    np.testing.assert_allclose(turned_logits, np.roll(logits, 2, axis=1), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(turned_value, value, rtol=1e-4, atol=1e-6)
    assert np.ptp(logits) > 1e-3


def test_the_logit_of_an_action_depends_on_its_direction():
    """The actions from i to j and from j to i have different logits."""
    ring = ring_topology(6)
    there = with_actions(ring, ring.action_senders, ring.action_receivers)
    back = with_actions(ring, ring.action_receivers, ring.action_senders)
    nodes, params = draw_nodes(ring), params_for(ring)
    one, other = (compile_apply(topology)(params, nodes)[0] for topology in (there, back))
    assert not np.allclose(one, other, atol=1e-4)


def with_actions(topology: Topology, action_senders: np.ndarray, action_receivers: np.ndarray) -> Topology:
    fields = {name: getattr(topology, name) for name in topology.__dataclass_fields__}
    return Topology(**{**fields, "action_senders": action_senders, "action_receivers": action_receivers})


def test_outputs_do_not_scale_with_the_board():
    """A ring of equal nodes looks the same from each node at any length, so logits and value are equal."""
    params = params_for(ring_topology(6))
    found = []
    node = draw_nodes(ring_topology(3))[:1, :1]
    for size in (6, 60):
        found.append(compile_apply(ring_topology(size))(params, np.tile(node, (1, size, 1))))
    (small_logits, small_value), (large_logits, large_value) = found
    np.testing.assert_allclose(large_value, small_value, rtol=1e-4)
    np.testing.assert_allclose(large_logits[:, :6], small_logits, rtol=1e-4, atol=1e-6)


def test_the_global_path_reaches_every_node():
    """One block passes features of a distant node to a node without an edge from it."""
    topology = ring_topology(8)
    nodes, params = draw_nodes(topology), params_for(topology)
    changed = nodes + np.eye(8, dtype=np.float32)[4][None, :, None]
    (logits, _), (after, _) = (compile_apply(topology)(params, each) for each in (nodes, changed))
    assert (np.abs(after - logits) > 1e-6).all()


@pytest.mark.parametrize(("precision", "tolerance"), [("bfloat16", 0.15), ("float16", 0.02)])
@pytest.mark.parametrize("backend", ["dense", "jraph"])
def test_half_precision_is_close_and_returns_float32(backend: str, precision: str, tolerance: float):
    """Parameters, gradients and outputs stay float32; the result is not exact, so the blocks are not float32."""
    exact, half = (differentiate("irregular", backend, np.float32, each)[:3] for each in ("float32", precision))
    differences = []
    for one, other in zip(jax.tree.leaves(exact), jax.tree.leaves(half), strict=True):
        assert other.dtype == np.float32
        differences.append(np.abs(one - other).max() / max(np.abs(one).max(), 1))
    assert 1e-5 < max(differences) < tolerance
    with jax.numpy_dtype_promotion("standard"):
        topology = TOPOLOGIES["irregular"]
        params = jax.jit(gat(topology, backend, precision).init)(jax.random.key(0), draw_nodes(topology))
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {np.dtype(np.float32)}


@pytest.mark.parametrize("board", ["hex:3", "breakthrough:5"])
def test_half_precision_does_not_round_the_logits(board: str):
    """The first board scores nodes, the second one pairs of nodes."""
    topology = make_game(board).topology
    network = gat(topology, "dense", "bfloat16")
    params = network.init(jax.random.key(0), draw_nodes(topology))
    logits, _ = jax.jit(network.apply)(params, draw_nodes(topology))
    assert (logits != logits.astype(jnp.bfloat16)).any()


def test_remat_does_not_change_the_result():
    kept, again = (differentiate("irregular", "dense", np.float32, "", remat) for remat in (False, True))
    for one, other in zip(jax.tree.leaves(kept[:3]), jax.tree.leaves(again[:3]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6 * max(np.abs(one).max(), 1))
    assert "optimization_barrier" in again.program
    assert "optimization_barrier" not in kept.program
