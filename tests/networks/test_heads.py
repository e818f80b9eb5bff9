"""The policy head reads the nodes of each action; the value head takes a weighted mean of the nodes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.games import make_game
from alphagat.graphs.topology import Topology
from alphagat.networks.heads import PolicyHead, ValueHead, pair_blocks, select_nodes, take_distinct
from tests.networks.boards import irregular_topology


@pytest.mark.parametrize("indices", [[2, 3], [3, 1, 1, 0]])
def test_select_nodes_equals_indexing(indices: list[int]):
    nodes = jax.random.normal(jax.random.key(0), (2, 5, 3))
    np.testing.assert_array_equal(select_nodes(nodes, np.array(indices)), nodes[:, np.array(indices)])


def test_a_logit_depends_only_on_the_pair_of_its_action():
    """It depends on the sender and the receiver and on no other node."""
    topology = irregular_topology(num_nodes=6, num_actions=5, seed=4)
    head = PolicyHead(topology)
    nodes = jax.random.normal(jax.random.key(0), (1, 6, 8))
    params = head.init(jax.random.key(1), nodes)
    by_node = jnp.abs(jax.jit(jax.jacrev(lambda x: head.apply(params, x)[0]))(nodes)).max((1, 3)) > 0  # [A, V]
    wanted = np.zeros((5, 6), bool)
    wanted[np.arange(5), topology.action_senders] = True
    wanted[np.arange(5), topology.action_receivers] = True
    np.testing.assert_array_equal(by_node, wanted)


def test_value_pooling_is_a_weighted_mean():
    """Repeating every node does not change it, and a single outlier among many nodes does."""
    head = ValueHead(num_pools=2)
    nodes = jax.random.normal(jax.random.key(0), (2, 5, 8))
    apply, params = jax.jit(head.apply), head.init(jax.random.key(1), nodes)
    few, repeated = apply(params, nodes), apply(params, jnp.tile(nodes, (1, 40, 1)))
    np.testing.assert_allclose(repeated, few, rtol=1e-4, atol=1e-6)
    many = jnp.tile(nodes[:, :1], (1, 200, 1))
    one_strange = many.at[:, 77].set(5 * nodes[:, 2])
    assert (jnp.abs(apply(params, one_strange) - apply(params, many)) > 1e-4).all()


def test_actions_of_one_pair_differ_by_kind():
    topology = irregular_topology(num_nodes=6, num_actions=5, seed=4)
    both = dataclasses.replace(
        topology,
        action_senders=topology.action_senders[[0, 0]],
        action_receivers=topology.action_receivers[[0, 0]],
        action_kinds=np.array([0, 1], np.int32),
    )
    nodes = jax.random.normal(jax.random.key(0), (1, 6, 8))
    head = PolicyHead(both)
    logits = head.apply(head.init(jax.random.key(1), nodes), nodes)[0]
    assert abs(logits[0] - logits[1]) > 1e-3


def topology_with_rare_kinds() -> Topology:
    """Kinds 0 and 2 occur everywhere, kind 1 nowhere, kinds 3 and 4 between nodes 2 to 4 and nodes 1 and 2."""
    topology = irregular_topology(num_nodes=6, num_actions=5, seed=4)
    actions = np.array(
        [(0, 5, 0), (5, 0, 0), (0, 5, 2), (5, 0, 2), (3, 3, 2), (2, 1, 3), (4, 2, 3), (2, 2, 4), (4, 1, 4)], np.int32
    )
    return dataclasses.replace(
        topology,
        vocabulary=dataclasses.replace(topology.vocabulary, action_kinds=tuple("abcde")),
        action_senders=actions[:, 0],
        action_receivers=actions[:, 1],
        action_kinds=actions[:, 2],
    )


@pytest.mark.parametrize("board", ["rare kinds", "gardner_chess", "breakthrough:5"])
def test_logits_of_pairs_equal_a_loop_over_actions(board: str):
    """A logit is the product of the key of the sender, per kind, and the query of the receiver, in float64."""
    topology = topology_with_rare_kinds() if board == "rare kinds" else make_game(board).topology
    width, num_kinds = 8, len(topology.vocabulary.action_kinds)
    nodes = jax.random.normal(jax.random.key(0), (2, topology.num_nodes, width))
    head = PolicyHead(topology)
    params = head.init(jax.random.key(1), nodes)
    params = jax.tree.map(lambda leaf: leaf + 0.1 * jax.random.normal(jax.random.key(2), leaf.shape), params)
    maps = jax.tree.map(np.float64, params["params"])

    def dense(name: str, inputs: np.ndarray) -> np.ndarray:
        return inputs @ maps[name]["kernel"] + maps[name]["bias"]

    hidden = dense("node", np.float64(nodes))
    hidden /= 1 + np.exp(-hidden)
    senders = dense("sender", hidden).reshape(2, -1, num_kinds, width)
    receivers = dense("receiver", hidden) / np.sqrt(width)
    actions = zip(topology.action_senders, topology.action_receivers, topology.action_kinds)
    expected = [(senders[:, sender, kind] * receivers[:, receiver]).sum(-1) for sender, receiver, kind in actions]
    np.testing.assert_allclose(head.apply(params, nodes), np.stack(expected, 1), rtol=1e-4, atol=1e-5)


def test_a_kind_is_scored_only_where_it_occurs():
    """Promotions of Gardner chess lead from one row to another."""
    blocks = pair_blocks(make_game("gardner_chess").topology)
    everywhere, promotions = blocks
    assert everywhere.kinds == slice(0, 1)
    assert everywhere.senders == everywhere.receivers == slice(0, 25)
    assert promotions.kinds == slice(1, 4)
    assert [extent.stop - extent.start for extent in (promotions.senders, promotions.receivers)] == [5, 5]


def test_actions_of_one_node_differ_by_kind():
    """Each logit depends on its node only."""
    topology = irregular_topology(num_nodes=6, num_actions=5, seed=4)
    places = np.array([3, 1, 3, 0], np.int32)
    at_nodes = dataclasses.replace(
        topology, action_senders=places, action_receivers=places, action_kinds=np.array([1, 0, 0, 1], np.int32)
    )
    nodes = jax.random.normal(jax.random.key(0), (1, 6, 8))
    head = PolicyHead(at_nodes)
    params = head.init(jax.random.key(1), nodes)
    logits = head.apply(params, nodes)[0]
    assert abs(logits[0] - logits[2]) > 1e-3
    by_node = jnp.abs(jax.jit(jax.jacrev(lambda x: head.apply(params, x)[0]))(nodes)).max((1, 3)) > 0  # [A, V]
    np.testing.assert_array_equal(by_node, np.eye(6, dtype=bool)[places])
    same = head.apply(params, nodes.at[0, 1].set(nodes[0, 3]))[0]
    np.testing.assert_allclose(same[1], same[2], rtol=1e-6)  # of one kind, at equal nodes


def test_take_distinct_equals_indexing_and_its_gradient():
    indices = np.array([4, 0, 3])
    values = jax.random.normal(jax.random.key(0), (2, 5))
    weights = jax.random.normal(jax.random.key(1), (2, 3))
    found, gradient = jax.value_and_grad(lambda x: (take_distinct(x, indices) * weights).sum())(values)
    wanted, reference = jax.value_and_grad(lambda x: (x[:, indices] * weights).sum())(values)
    np.testing.assert_allclose(found, wanted)
    np.testing.assert_array_equal(gradient, reference)


def test_a_support_gives_one_logit_per_return():
    head = ValueHead(num_pools=2, support=(0.0, 1.0, 2.0))
    nodes = jax.random.normal(jax.random.key(0), (2, 5, 8))
    assert head.apply(head.init(jax.random.key(1), nodes), nodes).shape == (2, 3)
