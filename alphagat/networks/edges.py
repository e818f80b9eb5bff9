"""The edges of a board as arrays, for attention and mixing."""

import chex
import jax
import jax.numpy as jnp
import jraph

from alphagat.graphs.topology import Topology


def per_edge(table: jax.Array, topology: Topology) -> jax.Array:
    """Expands `[R, n]`, numbers per relation, to `[n, V, V]` by (receiver, sender), 0 without an edge.

    It multiplies by a one-hot matrix, because the gradient of a lookup is a scatter-add.
    """
    relations = topology.relation_matrix.reshape(-1)
    one_hot = jax.nn.one_hot(relations, len(table), dtype=table.dtype)  # [V * V, R]; -1 gives zeros
    return jnp.einsum("er,rn->ne", one_hot, table).reshape(-1, topology.num_nodes, topology.num_nodes)


def batched_graph(topology: Topology, batch_size: int, edges: jax.Array | None = None) -> jraph.GraphsTuple:
    """Returns `batch_size` copies of the board as one `GraphsTuple`.

    The features of its edges are relation numbers, `[B * E]`, or for `edges` of each position `[B, V, V, R]` their
    strengths, `[B * E, R]`.
    """
    if edges is None:
        relations = jnp.tile(topology.relations, batch_size)
    else:
        relations = edges[:, topology.receivers, topology.senders].reshape(-1, edges.shape[-1])
    offsets = jnp.arange(batch_size, dtype=jnp.int32)[:, None] * topology.num_nodes
    return jraph.GraphsTuple(
        nodes=None,
        edges=relations,
        senders=(jnp.asarray(topology.senders)[None] + offsets).reshape(-1),
        receivers=(jnp.asarray(topology.receivers)[None] + offsets).reshape(-1),
        globals=None,
        n_node=jnp.full(batch_size, topology.num_nodes, jnp.int32),
        n_edge=jnp.full(batch_size, topology.num_edges, jnp.int32),
    )


def check_edges(edges: jax.Array | None, topology: Topology) -> None:
    """Checks at trace time that the edges of each position are `[B, V, V, R]`. Raises AssertionError otherwise."""
    if edges is not None:
        num_nodes, num_relations = topology.num_nodes, len(topology.vocabulary.relations)
        chex.assert_shape(edges, (None, num_nodes, num_nodes, num_relations))
