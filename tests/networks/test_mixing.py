"""Mixing equals its definition in both backends, and a depthwise convolution on a grid."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.graphs.topology import Topology, topology_from_matrix
from alphagat.networks.mixing import MIXING_BACKENDS, mix_by_feature, mix_by_node, mixing_matrix
from tests.networks.boards import irregular_topology, vocabulary

BATCH, GROUPS, WIDTH = 2, 3, 4
TOPOLOGY = irregular_topology(num_nodes=7, num_actions=3, seed=1)


@functools.cache
def compile_mixing(backend: str, topology: Topology):
    return jax.jit(functools.partial(MIXING_BACKENDS[backend], topology=topology))


def draw_inputs(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """Returns values `[B, V, S, d]` and relation weights `[R, S]`, float64."""
    generator = np.random.default_rng(0)
    values = generator.normal(size=(BATCH, topology.num_nodes, GROUPS, WIDTH))
    return values, generator.normal(size=(len(topology.vocabulary.relations), GROUPS))


def mix_slowly(values: np.ndarray, weights: np.ndarray, topology: Topology) -> np.ndarray:
    """Computes the formula of `alphagat.networks.mixing` one edge at a time."""
    edges = list(zip(topology.senders, topology.receivers, topology.relations))
    out = np.zeros_like(values)
    for sender, receiver, relation in edges:
        alike = sum(i == receiver and r == relation for _, i, r in edges)
        for group in range(GROUPS):
            out[:, receiver, group] += weights[relation, group] / alike * values[:, sender, group]
    return out


@pytest.mark.parametrize("backend", MIXING_BACKENDS)
def test_equals_the_formula(backend: str):
    values, weights = draw_inputs(TOPOLOGY)
    with jax.enable_x64(True):
        found = compile_mixing(backend, TOPOLOGY)(jnp.asarray(values), jnp.asarray(weights))
    expected = mix_slowly(values, weights, TOPOLOGY)
    np.testing.assert_allclose(found, expected, rtol=1e-6)  # the shares are float32
    assert (expected < 0).any()
    assert (expected > 0).any()


@pytest.mark.parametrize("backend", MIXING_BACKENDS)
def test_is_a_depthwise_convolution_on_a_grid(backend: str):
    """The relation is the step from the receiver to the sender, as in a 3x3 kernel."""
    rows, columns = 4, 5
    row, column = np.divmod(np.arange(rows * columns), columns)
    down, right = row[None] - row[:, None], column[None] - column[:, None]
    is_near = (abs(down) <= 1) & (abs(right) <= 1)
    relations = np.where(is_near, 3 * (down + 1) + right + 1, -1).astype(np.int32)
    nodes = np.arange(rows * columns)
    grid = topology_from_matrix(vocabulary(9, 1, 1), relations, nodes * 0, (nodes, nodes), (rows, columns))
    generator = np.random.default_rng(0)
    values = generator.normal(size=(BATCH, rows * columns, GROUPS, 1)).astype(np.float32)
    kernel = generator.normal(size=(3, 3, 1, GROUPS)).astype(np.float32)
    convolved = jax.lax.conv_general_dilated(
        values.reshape(BATCH, rows, columns, GROUPS),
        kernel,
        (1, 1),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=GROUPS,
    )
    found = compile_mixing(backend, grid)(values, kernel.reshape(9, GROUPS))
    np.testing.assert_allclose(found, convolved.reshape(values.shape), atol=1e-5)


@pytest.mark.parametrize("num_nodes", [3, 40])
def test_mixing_of_equal_nodes_does_not_depend_on_their_number(num_nodes: int):
    """With one relation, each node gets its weight times the mean of its senders."""
    nodes = np.arange(num_nodes)
    everyone = topology_from_matrix(
        vocabulary(1, 1, 1), np.zeros((num_nodes, num_nodes), np.int32), nodes * 0, (nodes, nodes), (1, num_nodes)
    )
    weights = np.array([[2.0, -1.0, 0.5]], np.float32)
    values = np.full((BATCH, num_nodes, GROUPS, WIDTH), 0.7, np.float32)
    for backend in MIXING_BACKENDS:
        found = compile_mixing(backend, everyone)(values, weights)
        np.testing.assert_allclose(found, np.broadcast_to(0.7 * weights[0][:, None], found.shape), rtol=1e-5)


def test_pairs_without_an_edge_have_no_weight():
    matrix = mixing_matrix(jnp.ones((4, GROUPS)), TOPOLOGY)
    np.testing.assert_array_equal(np.asarray(matrix) > 0, np.broadcast_to(TOPOLOGY.relation_matrix >= 0, matrix.shape))


def test_both_orders_of_a_product_agree_in_values_and_gradients():
    values, weights = draw_inputs(TOPOLOGY)
    out_gradient = np.random.default_rng(1).normal(size=values.shape)
    with jax.enable_x64(True):
        matrix = mixing_matrix(jnp.asarray(weights), TOPOLOGY)
        (found, found_vjp), (expected, expected_vjp) = (
            jax.vjp(jax.jit(mix), matrix, jnp.asarray(values)) for mix in (mix_by_feature, mix_by_node)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        for ours, theirs in zip(found_vjp(jnp.asarray(out_gradient)), expected_vjp(jnp.asarray(out_gradient))):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize(
    ("platform", "sizes"), [("cuda", (GROUPS, WIDTH, BATCH, 7)), ("cpu", (GROUPS, BATCH, WIDTH, 7))]
)
def test_a_gpu_computes_with_features_first(platform: str, sizes: tuple[int, ...]):
    values, weights = (jnp.asarray(each, jnp.float32) for each in draw_inputs(TOPOLOGY))
    program = compile_mixing("dense", TOPOLOGY).trace(values, weights).lower(lowering_platforms=(platform,)).as_text()
    (product,) = [line for line in program.splitlines() if "dot_general" in line and "batching_dims" in line]
    assert f"-> tensor<{'x'.join(map(str, sizes))}x" in product
