"""Multi-head attention along the edges of a graph: one function with two backends.

Both take `query` and `key` `[B, V, H, k]`, `value` `[B, V, H, d]`, `relation_bias` `[R, H]`, the topology, and its
edges, or `edges` `[B, V, V, R]` of each position (`Game.edges`). They return `[B, V, H, d]`. For receiver i, head h,
and each sender j with an edge to i of relation r(i, j):

    weight_ij = softmax_j(query_i . key_j / sqrt(k) + relation_bias[r(i, j), h]),    out_i = sum_j weight_ij value_j

The softmax is in float32. At half precision, the products of query and key are rounded to half precision before it.

The logit depends jointly on receiver and sender: the attention is dynamic (Brody et al. 2022, "How attentive are graph
attention networks?", section 3), in the query-key form of Vaswani et al. 2017, equation 1, with a typed bias per edge
(Shaw et al. 2018; Graphormer, Ying et al. 2021, equation 6). The bias of an edge with strengths in several relations is
the sum of their biases, weighted by the strengths.
"""

# The types that jraph declares are too wide for a type checker.
# pyright: reportIndexIssue=false, reportArgumentType=false, reportOperatorIssue=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false

import chex
import jax
import jax.numpy as jnp
import jraph

from alphagat.graphs.topology import Topology
from alphagat.networks.edges import batched_graph, check_edges, per_edge

MASKED = -1e30  # finite, so that softmax has no inf - inf; every node has an edge to itself


def split_heads(projected: jax.Array, num_heads: int, key_size: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Splits `[B, V, H * (2 * k + d)]` into query and key `[B, V, H, k]` and value `[B, V, H, d]`.

    The columns of a head are adjacent, so that devices can share the heads. The gradient of a split is one
    concatenation; that of three slices is the sum of three padded arrays, ten times as slow on a CPU.
    """
    by_head = projected.reshape(*projected.shape[:-1], num_heads, -1)
    query, key, value = jnp.split(by_head, (key_size, 2 * key_size), axis=-1)
    return query, key, value


def edge_bias(relation_bias: jax.Array, topology: Topology) -> jax.Array:
    """Returns `[H, V, V]` by (receiver, sender): the learned bias, or `MASKED` without an edge."""
    return jnp.where((topology.relation_matrix >= 0)[None], per_edge(relation_bias, topology), MASKED)


def strength_bias(relation_bias: jax.Array, edges: jax.Array) -> jax.Array:
    """Returns `[..., H]` for strengths `[..., R]`: the bias of each edge, or `MASKED` where there is none."""
    return jnp.where(edges.any(-1, keepdims=True), edges @ relation_bias, MASKED)


def _bias_of(batch_size: int, relation_bias: jax.Array, topology: Topology, edges: jax.Array | None) -> jax.Array:
    """Returns `[B, H, V, V]` by (receiver, sender)."""
    if edges is not None:
        return jnp.moveaxis(strength_bias(relation_bias, edges), 3, 1)
    bias = edge_bias(relation_bias, topology)
    return jnp.broadcast_to(bias[None], (batch_size, *bias.shape))


def dense_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    relation_bias: jax.Array,
    topology: Topology,
    edges: jax.Array | None = None,
) -> jax.Array:
    """Attends by masked matrix products over all pairs of nodes, without gather or scatter in either pass."""
    _check_shapes(query, key, value, relation_bias, topology, edges)
    query, key, value = (jnp.swapaxes(x, 1, 2) for x in (query, key, value))  # [B, H, V, d]: head-major is fastest
    bias = _bias_of(query.shape[0], relation_bias, topology, edges)
    return jnp.swapaxes(_attend(_scaled(query), key, value, bias), 1, 2)


def attention_weights(
    query: jax.Array, key: jax.Array, relation_bias: jax.Array, topology: Topology, edges: jax.Array | None = None
) -> jax.Array:
    """Returns `[B, H, V, V]` by (receiver, sender): the attention weights; 0 without an edge."""
    query, key = jnp.swapaxes(query, 1, 2), jnp.swapaxes(key, 1, 2)
    bias = _bias_of(query.shape[0], relation_bias, topology, edges)
    exponentials, sums = _exponentials(_scaled(query), key, bias)
    return exponentials / sums


def _check_shapes(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    relation_bias: jax.Array,
    topology: Topology,
    edges: jax.Array | None,
) -> None:
    """Checks shapes at trace time. Raises AssertionError unless they are those in the module's docstring."""
    check_edges(edges, topology)
    chex.assert_equal_shape([query, key])
    chex.assert_equal_shape_prefix([query, value], 3)
    chex.assert_shape(query, (None, topology.num_nodes, None, None))
    chex.assert_shape(relation_bias, (len(topology.vocabulary.relations), query.shape[2]))


def _scaled(query: jax.Array) -> jax.Array:
    return query * query.shape[-1] ** -0.5


def _exponentials(query: jax.Array, key: jax.Array, bias: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the numerators `[B, H, V, V]` and denominators `[B, H, V, 1]` of the softmax, float32 like `bias`."""
    logits = jnp.matmul(query, jnp.swapaxes(key, 2, 3)) + bias
    exponentials = jnp.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials, exponentials.sum(axis=-1, keepdims=True)


@jax.custom_vjp
def _attend(query: jax.Array, key: jax.Array, value: jax.Array, bias: jax.Array) -> jax.Array:
    """Returns the attended values `[B, H, V, d]`; the bias is `[B, H, V, V]` float32."""
    return _attend_and_keep(query, key, value, bias)[0]


def _attend_and_keep(query: jax.Array, key: jax.Array, value: jax.Array, bias: jax.Array) -> tuple:
    exponentials, sums = _exponentials(query, key, bias)
    # Divides d numbers after the product instead of V before it: saves a tenth of an evaluation on a CPU.
    attended = (jnp.matmul(exponentials.astype(value.dtype), value) / sums).astype(value.dtype)
    return attended, (query, key, value, exponentials / sums, attended)


def _attend_backward(kept: tuple, gradient: jax.Array) -> tuple:
    """Computes the gradient without transposing a `[B, H, V, V]` array, with row sums over d instead of V (Dao et al.
    2022, appendix B.2). On a CPU this makes an update an eighth faster.
    """
    query, key, value, weights, attended = kept
    of_weights = jnp.matmul(gradient, jnp.swapaxes(value, 2, 3))
    row_sums = (gradient.astype(weights.dtype) * attended).sum(-1, keepdims=True)
    of_logits = weights * (of_weights - row_sums)
    rows = of_logits.astype(query.dtype)
    of_key = jnp.matmul(jnp.swapaxes(query, 2, 3), rows)  # [B, H, d, V], like `of_value`
    of_value = jnp.matmul(jnp.swapaxes(gradient, 2, 3), weights.astype(value.dtype))
    return jnp.matmul(rows, key), jnp.swapaxes(of_key, 2, 3), jnp.swapaxes(of_value, 2, 3), of_logits


_attend.defvjp(_attend_and_keep, _attend_backward)


def jraph_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    relation_bias: jax.Array,
    topology: Topology,
    edges: jax.Array | None = None,
) -> jax.Array:
    """Attends by segment operations over the edges of a `GraphsTuple`; the work grows with E instead of V squared."""
    _check_shapes(query, key, value, relation_bias, topology, edges)
    batch_size, num_nodes = query.shape[:2]
    graphs = batched_graph(topology, batch_size, edges)._replace(
        nodes=jax.tree.map(
            lambda x: x.reshape(batch_size * num_nodes, *x.shape[2:]), {"query": query, "key": key, "value": value}
        )
    )

    def message(relations, sent, received, _):
        bias = relation_bias[relations] if edges is None else strength_bias(relation_bias, relations)
        logits = (received["query"] * sent["key"]).sum(-1) * query.shape[-1] ** -0.5 + bias
        return {"logits": logits, "value": sent["value"]}

    attend = jraph.GraphNetwork(
        update_edge_fn=message,
        update_node_fn=lambda nodes, sent, received, globals_: received,
        attention_logit_fn=lambda edges, sent, received, globals_: edges["logits"],
        attention_normalize_fn=jraph.segment_softmax,
        attention_reduce_fn=lambda edges, weights: edges["value"] * weights[..., None].astype(value.dtype),
    )
    return attend(graphs).nodes.reshape(value.shape)


ATTENTION_BACKENDS = {"dense": dense_attention, "jraph": jraph_attention}
