"""Attention equals its definition in both backends; nodes without an edge have no effect."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.graphs.topology import Topology
from alphagat.networks.attention import ATTENTION_BACKENDS
from alphagat.networks.edges import batched_graph
from tests.networks.boards import irregular_topology

BATCH, HEADS, WIDTH = 2, 3, 4
TOPOLOGY = irregular_topology(num_nodes=7, num_actions=3, seed=1)


@functools.cache
def compile_attention(backend: str, topology: Topology):
    return jax.jit(functools.partial(ATTENTION_BACKENDS[backend], topology=topology))


def draw_inputs(topology: Topology, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Returns query, key, value `[B, V, H, d]` and relation bias `[R, H]`, float64."""
    generator = np.random.default_rng(seed)
    shape = BATCH, topology.num_nodes, HEADS, WIDTH
    return (*generator.normal(size=(3, *shape)), generator.normal(size=(len(topology.vocabulary.relations), HEADS)))


def attend_slowly(query, key, value, relation_bias, topology: Topology) -> np.ndarray:
    """Computes the formula of `alphagat.networks.attention` one edge at a time."""
    weights = [[[{} for _ in range(HEADS)] for _ in range(topology.num_nodes)] for _ in range(BATCH)]
    for batch in range(BATCH):
        for sender, receiver, relation in zip(topology.senders, topology.receivers, topology.relations):
            for head in range(HEADS):
                logit = sum(query[batch, receiver, head] * key[batch, sender, head]) / WIDTH**0.5
                weights[batch][receiver][head][sender] = np.exp(logit + relation_bias[relation, head])
    out = np.zeros_like(value)
    for batch in range(BATCH):
        for receiver in range(topology.num_nodes):
            for head in range(HEADS):
                heard = weights[batch][receiver][head]
                for sender, weight in heard.items():
                    out[batch, receiver, head] += weight / sum(heard.values()) * value[batch, sender, head]
    return out


@pytest.mark.parametrize("backend", ATTENTION_BACKENDS)
def test_equals_the_formula(backend: str):
    inputs = draw_inputs(TOPOLOGY)
    with jax.enable_x64(True):
        found = compile_attention(backend, TOPOLOGY)(*map(jnp.asarray, inputs))
    np.testing.assert_allclose(found, attend_slowly(*inputs, TOPOLOGY), rtol=1e-10)


@pytest.mark.parametrize("backend", ATTENTION_BACKENDS)
def test_depends_exactly_on_the_senders(backend: str):
    """The output of receiver i depends on key and value of j if and only if there is an edge from j to i."""
    query, key, value, bias = (jnp.asarray(x, jnp.float32) for x in draw_inputs(TOPOLOGY))

    def attend(key, value):
        return compile_attention(backend, TOPOLOGY)(query, key, value, bias).sum((0, 2, 3))  # [V]

    by_key, by_value = jax.jit(jax.jacrev(attend, argnums=(0, 1)))(key, value)  # [V, B, V, H, d]
    is_edge = TOPOLOGY.relation_matrix >= 0
    np.testing.assert_array_equal(jnp.abs(by_value).max((1, 3, 4)) > 0, is_edge)
    several = is_edge & (is_edge.sum(1, keepdims=True) > 1)  # with one sender the weight is always 1
    np.testing.assert_array_equal(jnp.abs(by_key).max((1, 3, 4)) > 1e-6, several)


def test_nodes_without_an_edge_have_no_effect():
    """The comparison is exact, also for huge masked logits: the mask is far below any logit."""
    query, key, value, bias = (jnp.asarray(x, jnp.float32) for x in draw_inputs(TOPOLOGY))
    deaf = TOPOLOGY.relation_matrix < 0
    sender = int(np.argmax(deaf.sum(0)))
    assert deaf[:, sender].any()
    before = compile_attention("dense", TOPOLOGY)(query, key, value, bias)
    huge = key.at[:, sender].mul(1e6), value.at[:, sender].set(1e6)
    after = compile_attention("dense", TOPOLOGY)(query, *huge, bias)
    np.testing.assert_array_equal(after[:, deaf[:, sender]], before[:, deaf[:, sender]])
    assert not np.array_equal(after, before)


@pytest.mark.parametrize("backend", ATTENTION_BACKENDS)
@pytest.mark.parametrize("num_nodes", [3, 40])
def test_attention_among_equal_nodes_does_not_depend_on_their_number(backend: str, num_nodes: int):
    topology = irregular_topology(num_nodes, 2, seed=3)
    query, key, _, bias = (jnp.asarray(x, jnp.float32) for x in draw_inputs(topology))
    value = jnp.full(query.shape, 0.7)
    np.testing.assert_allclose(compile_attention(backend, topology)(query, key, value, bias), value, rtol=1e-5)


def test_graphs_of_a_batch_are_disjoint():
    graphs = batched_graph(TOPOLOGY, 3)
    graph_of_edge = np.repeat(np.arange(3), TOPOLOGY.num_edges)
    for ends, single in ((graphs.senders, TOPOLOGY.senders), (graphs.receivers, TOPOLOGY.receivers)):
        np.testing.assert_array_equal(np.asarray(ends) // TOPOLOGY.num_nodes, graph_of_edge)
        np.testing.assert_array_equal(np.asarray(ends) % TOPOLOGY.num_nodes, np.tile(single, 3))
    np.testing.assert_array_equal(graphs.edges, np.tile(TOPOLOGY.relations, 3))
    assert graphs.n_node.tolist() == [TOPOLOGY.num_nodes] * 3
    assert graphs.n_edge.tolist() == [TOPOLOGY.num_edges] * 3
