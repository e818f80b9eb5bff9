"""Signed mixing of node features along typed edges: one function with two backends.

Both take `values` `[B, V, S, d]`, `relation_weights` `[R, S]`, the topology, and its edges, or `edges` `[B, V, V, R]`
of each position (`Game.edges`). They return `[B, V, S, d]`. For receiver i and group s of features, with one weight of
either sign per relation r(i, j) of an edge from j to i, and n_r(i) senders of relation r:

    out_i^s = sum_j relation_weights[r, s] / n_r(i) * value_j^s,    r = r(i, j)

The weights do not depend on the features, so there is no softmax, and a weight may subtract. It is the relational graph
convolution of Schlichtkrull et al. 2018 (equations 2 and 3) with block-diagonal weights whose blocks are multiples of
the identity. On a grid with a relation per step it is a depthwise convolution. The division by n_r(i) keeps the scale
where a relation has more senders on larger boards. Where edges have strengths, 1 / n_r(i) is the strength of the edge
divided by the sum of the strengths in relation r of all edges to i, and an edge may be in several relations.
"""

# The types that jraph declares are too wide for a type checker.
# pyright: reportAttributeAccessIssue=false, reportOptionalMemberAccess=false

import chex
import jax
import jax.numpy as jnp
import jraph
import numpy as np

from alphagat.graphs.topology import Topology
from alphagat.networks.edges import batched_graph, check_edges, per_edge


def dense_mixing(
    values: jax.Array, relation_weights: jax.Array, topology: Topology, edges: jax.Array | None = None
) -> jax.Array:
    """Mixes by one matrix product per group over all pairs of nodes, without gather or scatter in either pass."""
    _check_shapes(values, relation_weights, topology, edges)
    if edges is not None:
        matrices = jnp.einsum("bijr,rs->bsij", strength_shares(edges), relation_weights).astype(values.dtype)
        return jnp.einsum("bsij,bjsd->bisd", matrices, values)
    matrix = mixing_matrix(relation_weights, topology).astype(values.dtype)
    return jax.lax.platform_dependent(matrix, values, cuda=mix_by_feature, default=mix_by_node)


def mix_by_node(matrix: jax.Array, values: jax.Array) -> jax.Array:
    return jnp.einsum("sij,bjsd->bisd", matrix, values)


def mix_by_feature(matrix: jax.Array, values: jax.Array) -> jax.Array:
    """Computes the same with features first, which XLA for GPUs merges with the products before and after it, so that
    neither pass copies values into another order.
    """
    return jnp.einsum("sij,sdbj->sdbi", matrix, values.transpose(2, 3, 0, 1)).transpose(2, 3, 0, 1)


def mixing_matrix(relation_weights: jax.Array, topology: Topology) -> jax.Array:
    """Returns the weights `[S, V, V]` by (receiver, sender), 0 without an edge."""
    shares = np.zeros((topology.num_nodes, topology.num_nodes), np.float32)
    shares[topology.receivers, topology.senders] = edge_shares(topology)
    return per_edge(relation_weights, topology) * shares.astype(relation_weights.dtype)[None]


def jraph_mixing(
    values: jax.Array, relation_weights: jax.Array, topology: Topology, edges: jax.Array | None = None
) -> jax.Array:
    """Mixes by segment sums over the edges of a `GraphsTuple`; the work grows with E instead of V squared."""
    _check_shapes(values, relation_weights, topology, edges)
    batch_size, num_nodes = values.shape[:2]
    graphs = batched_graph(topology, batch_size, None if edges is None else strength_shares(edges))

    def message(relations, sent, received, _):
        if edges is None:
            shares = jnp.tile(edge_shares(topology), batch_size)[:, None]
            weights = relation_weights[relations] * shares.astype(relation_weights.dtype)
        else:
            weights = relations @ relation_weights
        return sent * weights[..., None].astype(values.dtype)

    mix = jraph.GraphNetwork(update_edge_fn=message, update_node_fn=lambda nodes, sent, received, globals_: received)
    mixed = mix(graphs._replace(nodes=values.reshape(batch_size * num_nodes, *values.shape[2:])))
    return mixed.nodes.reshape(values.shape)


MIXING_BACKENDS = {"dense": dense_mixing, "jraph": jraph_mixing}


def _check_shapes(values: jax.Array, relation_weights: jax.Array, topology: Topology, edges: jax.Array | None) -> None:
    """Checks shapes at trace time. Raises AssertionError unless they are those in the module's docstring."""
    check_edges(edges, topology)
    chex.assert_shape(values, (None, topology.num_nodes, None, None))
    chex.assert_shape(relation_weights, (len(topology.vocabulary.relations), values.shape[2]))


def strength_shares(edges: jax.Array) -> jax.Array:
    """Divides strengths `[B, V, V, R]` by their sums over the senders; 0 where a receiver has none of a relation."""
    sums = edges.sum(2, keepdims=True)
    return edges / jnp.where(sums > 0, sums, 1)


def edge_shares(topology: Topology) -> np.ndarray:
    """Returns `[E]` float32: 1 / n_r(i) of each edge, for its relation r and receiver i."""
    counts = np.zeros((len(topology.vocabulary.relations), topology.num_nodes), np.float32)
    np.add.at(counts, (topology.relations, topology.receivers), 1)
    return 1 / counts[topology.relations, topology.receivers]
