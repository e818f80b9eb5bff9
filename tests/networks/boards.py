"""Test topologies without counterpart in any game, irregular graphs and graphs without types, and a small GAT."""

from typing import Any

import jax
import numpy as np

from alphagat.graphs.topology import RelationVocabulary, Topology
from alphagat.networks import make_network


def vocabulary(num_relations: int, num_kinds: int, num_action_kinds: int) -> RelationVocabulary:
    relations, kinds = [f"r{i}" for i in range(num_relations)], [f"k{i}" for i in range(num_kinds)]
    return RelationVocabulary("test", 1, tuple(relations), tuple(kinds), tuple("abc"[:num_action_kinds]))


def irregular_topology(num_nodes: int, num_actions: int, seed: int) -> Topology:
    """Draws a directed graph with self-edges and degrees from 1 to the number of nodes.

    Actions of two kinds are edges and may share one.
    """
    generator = np.random.default_rng(seed)
    density = generator.uniform(0, 1, (num_nodes, 1))
    connected = (generator.uniform(size=(num_nodes, num_nodes)) < density) | np.eye(num_nodes, dtype=bool)
    connected[0] = np.eye(1, num_nodes, dtype=bool)  # a node with only a self-edge
    receivers, senders = np.nonzero(connected)
    order = generator.permutation(len(senders))  # unsorted edges
    receivers, senders = receivers[order].astype(np.int32), senders[order].astype(np.int32)
    actions, kinds = np.divmod(generator.choice(2 * len(senders), num_actions, replace=False), 2)
    return Topology(
        vocabulary=vocabulary(4, 3, 2),
        senders=senders,
        receivers=receivers,
        relations=generator.integers(0, 4, len(senders), np.int32),
        node_kinds=generator.integers(0, 3, num_nodes, np.int32),
        action_senders=senders[actions],
        action_receivers=receivers[actions],
        action_kinds=kinds.astype(np.int32),
        grid_shape=(1, num_nodes),
    )


def ring_topology(num_nodes: int) -> Topology:
    """Joins each node to itself and both neighbours, all relations equal; action i is the edge from i to i + 1."""
    node = np.arange(num_nodes, dtype=np.int32)
    return Topology(
        vocabulary=vocabulary(1, 1, 1),
        senders=np.concatenate([node, (node + 1) % num_nodes, (node - 1) % num_nodes]).astype(np.int32),
        receivers=np.tile(node, 3),
        relations=np.zeros(3 * num_nodes, np.int32),
        node_kinds=np.zeros(num_nodes, np.int32),
        action_senders=node,
        action_receivers=(node + 1) % num_nodes,
        action_kinds=np.zeros(num_nodes, np.int32),
        grid_shape=(1, num_nodes),
    )


def small_gat(topology: Topology, blocks: tuple[str, ...], num_blocks: int, **options: Any) -> Any:
    """Makes a network with two heads and four groups; `options` are further arguments of `make_network`."""
    sizes = {"width": 8, "num_heads": 2, "key_size": 3, "mixing_groups": 4, "mlp_ratio": 2, "value_pools": 3}
    chosen = {"backend": "dense", "remat": False} | options
    return make_network(topology, name="gat", blocks=blocks, num_blocks=num_blocks, **sizes, **chosen)


def draw_params(network: Any, nodes: Any, dtype: type = np.float32) -> Any:
    """Draws every parameter from a normal distribution; the initializers leave biases at 0."""
    generator = np.random.default_rng(0)
    shapes = jax.eval_shape(network.init, jax.random.key(0), nodes)
    return jax.tree.map(lambda x: generator.normal(0, 0.5, x.shape).astype(dtype), shapes)
