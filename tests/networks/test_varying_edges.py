"""A network on positions with edges of their own equals one network per position, on a board with those edges."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from alphagat.graphs.topology import RelationVocabulary, Topology, complete_topology, topology_from_matrix
from alphagat.networks.attention import ATTENTION_BACKENDS, attention_weights
from alphagat.networks.fused.weights import find_misfit
from alphagat.networks.mixing import MIXING_BACKENDS
from alphagat.networks.pipeline import PipelinedNetwork
from alphagat.runtime import sharding
from tests.networks.boards import draw_params, small_gat

NODES, FEATURES, POSITIONS = 7, 3, 4
VOCABULARY = RelationVocabulary("random graph", 1, ("self", "near", "far"), ("vertex",))
COMPLETE = complete_topology(VOCABULARY, NODES)


def random_relations(seed: int) -> np.ndarray:
    """Draws `[V, V]` relations without symmetry, -1 for none; node 0 has no edge but that to itself."""
    generator = np.random.default_rng(seed)
    matrix = generator.integers(-1, 3, (NODES, NODES))
    matrix[0], matrix[:, 0] = -1, -1
    np.fill_diagonal(matrix, 0)
    return matrix


RELATIONS = np.stack([random_relations(seed) for seed in range(POSITIONS)])
EDGES = (RELATIONS[..., None] == np.arange(3)).astype(np.float32)  # [B, V, V, R]


def static_topology(relations: np.ndarray) -> Topology:
    nodes = np.arange(NODES)
    return topology_from_matrix(VOCABULARY, relations, 0 * nodes, (nodes, nodes), (1, NODES))


def gat(topology: Topology, backend: str = "dense", precision: str = "float32", remat: bool = False):
    blocks = "mixing+attention", "mixing", "attention"
    return small_gat(topology, blocks, len(blocks), backend=backend, precision=precision, remat=remat)


NODE_FEATURES = np.random.default_rng(1).normal(size=(POSITIONS, NODES, FEATURES)).astype(np.float32)


PARAMS = draw_params(gat(COMPLETE), NODE_FEATURES)


def loss(outputs):
    logits, value = outputs
    weights = np.arange(1, 1 + logits.size, dtype=np.float32).reshape(logits.shape)
    return (jnp.sin(logits) * weights).sum() + (value**2).sum(), outputs


@functools.cache
def expected_results():
    """Returns gradients and outputs of one network per position, whose board has its edges."""

    def apply(params, nodes):
        boards = [gat(static_topology(relations)) for relations in RELATIONS]
        each = [board.apply(params, nodes[i : i + 1]) for i, board in enumerate(boards)]
        return loss(jax.tree.map(lambda *rows: jnp.concatenate(rows), *each))

    return jax.jit(jax.grad(apply, argnums=(0, 1), has_aux=True))(PARAMS, NODE_FEATURES)


def assert_close(found, expected, tolerance=2e-5):
    largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(expected))
    paths = jax.tree_util.tree_leaves_with_path(expected)
    for (path, one), other in zip(paths, jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(other, one, atol=tolerance * largest, err_msg=jax.tree_util.keystr(path))


@pytest.mark.parametrize(
    ("backend", "remat"), [("dense", False), ("dense", True), ("jraph", False)], ids=["dense", "remat", "jraph"]
)
def test_outputs_and_gradients_equal_those_of_one_board_per_position(backend: str, remat: bool):
    def apply(params, nodes):
        return loss(gat(COMPLETE, backend, remat=remat).apply(params, nodes, EDGES))

    found = jax.jit(jax.grad(apply, argnums=(0, 1), has_aux=True))(PARAMS, NODE_FEATURES)
    assert_close(found, expected_results())


def test_stages_get_the_edges_of_their_part_of_the_batch():
    pipelined, everywhere = PipelinedNetwork(gat(COMPLETE), (1, 2)), PartitionSpec()

    def find(params, nodes, edges):
        def apply(params, nodes):
            return loss(pipelined.apply(params, nodes, edges))

        return jax.grad(apply, argnums=(0, 1), has_aux=True)(params, nodes)

    program = sharding.over_data(find, sharding.make_mesh(1, 1, 2), (everywhere,) * 3, everywhere)
    assert_close(jax.jit(program)(PARAMS, NODE_FEATURES, EDGES), expected_results())


def test_half_precision_stays_near_single_precision():
    outputs = jax.jit(gat(COMPLETE, precision="bfloat16").apply)(PARAMS, NODE_FEATURES, EDGES)
    assert_close(outputs, expected_results()[1], 3e-2)


def strengths(seed: int) -> np.ndarray:
    """Draws strengths of up to three relations for each edge of `RELATIONS`."""
    generator = np.random.default_rng(seed)
    drawn = generator.uniform(0.1, 2, EDGES.shape) * (generator.uniform(size=EDGES.shape) < 0.6)
    drawn[:, np.arange(NODES), np.arange(NODES)] = [1, 0, 0]
    return (drawn * (RELATIONS >= 0)[..., None]).astype(np.float32)


def test_backends_agree_on_strengths():
    results = []
    for backend in ("dense", "jraph"):

        def apply(params, nodes, edges, backend=backend):
            return loss(gat(COMPLETE, backend).apply(params, nodes, edges))

        program = jax.jit(jax.grad(apply, argnums=(0, 1, 2), has_aux=True))
        results.append(program(PARAMS, NODE_FEATURES, strengths(3)))
    assert_close(*results)


def test_strengths_follow_the_definition():
    """Compares one block of each kind with loops over nodes, in float64."""
    generator, edges = np.random.default_rng(5), strengths(4)
    query, key, value = (generator.normal(size=(POSITIONS, NODES, 2, size)).astype(np.float32) for size in (3, 3, 4))
    bias, weights = (generator.normal(size=(3, 2)).astype(np.float32) for _ in range(2))
    attended = ATTENTION_BACKENDS["dense"](query, key, value, bias, COMPLETE, edges)
    mixed = MIXING_BACKENDS["dense"](value, weights, COMPLETE, edges)
    shares = attention_weights(query, key, bias, COMPLETE, edges)
    for b, i, h in np.ndindex(POSITIONS, NODES, 2):  # position, receiver, head or group
        senders = [j for j in range(NODES) if edges[b, i, j].any()]
        logits = np.array([query[b, i, h] @ key[b, j, h] / np.sqrt(3) + edges[b, i, j] @ bias[:, h] for j in senders])
        chances = np.exp(logits) / np.exp(logits).sum()
        np.testing.assert_allclose(shares[b, h, i, senders], chances, rtol=1e-4)
        np.testing.assert_allclose(shares[b, h, i].sum(), 1, rtol=1e-5)
        np.testing.assert_allclose(attended[b, i, h], chances @ value[b, senders, h], rtol=1e-3, atol=1e-5)
        total = np.zeros(4)
        for r in range(3):
            sum_of_strengths = edges[b, i, :, r].sum(dtype=np.float64)
            for j in senders:
                if sum_of_strengths:
                    total += weights[r, h] * edges[b, i, j, r] / sum_of_strengths * value[b, j, h]
        np.testing.assert_allclose(mixed[b, i, h], total, rtol=1e-3, atol=1e-5)


def test_parameters_do_not_depend_on_whether_edges_vary():
    fixed = jax.eval_shape(gat(static_topology(RELATIONS[0])).init, jax.random.key(0), NODE_FEATURES)
    assert fixed == jax.eval_shape(gat(COMPLETE).init, jax.random.key(0), NODE_FEATURES)


@pytest.mark.parametrize("wrong", ["edges missing", "edges too many"])
def test_edges_go_with_boards_whose_edges_vary(wrong: str):
    topology, edges = (COMPLETE, None) if wrong == "edges missing" else (static_topology(RELATIONS[0]), EDGES)
    with pytest.raises(AssertionError, match="edges must be given if they vary"):
        gat(topology).apply(PARAMS, NODE_FEATURES, edges)


def test_the_kernel_refuses_varying_edges():
    assert "same edges" in str(find_misfit(COMPLETE, 64, "float32"))
    assert find_misfit(dataclasses.replace(COMPLETE, edges_vary=False), 64, "float32") is None


def test_several_actions_may_choose_one_node():
    nodes, kinds = np.tile(np.arange(3), 2), np.repeat([0, 1], 3)
    topology = complete_topology(VOCABULARY, 3, (nodes, nodes), kinds)
    assert topology.edges_vary
    assert topology.action_receivers.tolist() == topology.action_senders.tolist() == [0, 1, 2, 0, 1, 2]
    assert topology.action_kinds.tolist() == [0, 0, 0, 1, 1, 1]
