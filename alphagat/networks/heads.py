"""Heads: the prior from the nodes of each action, the value by attention pooling."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax.linen.dtypes import promote_dtype

from alphagat.graphs.topology import Topology
from alphagat.networks.dense import Dense, dot_rows
from alphagat.networks.values import Support


class PolicyHead(nn.Module):
    """Scores each action from its node or its (sender, receiver) pair.

    Call: nodes `[B, V, D]` -> prior logits `[B, A]` float32. The last layer is not rounded to half precision, which
    would be as coarse as 1/32 for logits above 4.
    """

    topology: Topology
    dtype: jnp.dtype = jnp.dtype("float32")

    @nn.compact
    def __call__(self, nodes: jax.Array) -> jax.Array:
        if np.array_equal(self.topology.action_senders, self.topology.action_receivers):
            return self._node_logits(nodes)
        return self._pair_logits(nodes)

    def _node_logits(self, nodes: jax.Array) -> jax.Array:
        """Scores the nodes of the actions, or all nodes once per kind of action if there are several kinds."""
        num_kinds = len(self.topology.vocabulary.action_kinds)
        if num_kinds == 1:
            nodes = select_nodes(nodes, self.topology.action_receivers)
        hidden = Dense(nodes.shape[-1], dtype=self.dtype, name="receiver")(nodes)
        scores = Dense(num_kinds, name="logit")(at_least_float32(nn.silu(hidden)))
        if num_kinds == 1:
            return scores[..., 0]
        places = self.topology.action_receivers * num_kinds + self.topology.action_kinds
        return take_distinct(scores.reshape(len(scores), -1), places)

    def _pair_logits(self, nodes: jax.Array) -> jax.Array:
        """Scores pairs of nodes by query and key, once per kind of action, and selects the actions.

        A kind is scored only in the ranges of nodes where it occurs: promotions of chess in two of eight rows.
        """
        batch_size, _, width = nodes.shape
        blocks = pair_blocks(self.topology)
        hidden = nn.silu(Dense(width, dtype=self.dtype, name="node")(nodes))
        num_kinds = len(self.topology.vocabulary.action_kinds)
        senders = DensePerKind(num_kinds, dtype=self.dtype, name="sender")(hidden, blocks)
        receivers = Dense(width, dtype=self.dtype, name="receiver")(hidden) * width**-0.5
        scores = [
            jnp.matmul(  # [B, R, S * K] by (receiver, (sender, kind))
                receivers[:, block.receivers],
                jnp.swapaxes(block_senders, 1, 2),
                preferred_element_type=jnp.promote_types(self.dtype, jnp.float32),
            )
            for block, block_senders in zip(blocks, senders, strict=True)
        ]
        scores = jnp.concatenate([each.reshape(batch_size, -1) for each in scores], axis=1)
        return take_distinct(scores, action_places(self.topology, blocks))


class PairBlock(NamedTuple):
    """Consecutive kinds of action that occur in the same range of senders and the same range of receivers."""

    kinds: slice
    senders: slice
    receivers: slice


def pair_blocks(topology: Topology) -> list[PairBlock]:
    """Returns the blocks of all actions."""

    def extents(kind: int) -> tuple[slice, ...]:
        actions = topology.action_kinds == kind
        ends = topology.action_senders[actions], topology.action_receivers[actions]
        return tuple(slice(int(nodes.min()), int(nodes.max()) + 1) for nodes in ends)

    blocks = []
    for (senders, receivers), group in itertools.groupby(np.unique(topology.action_kinds).tolist(), extents):
        kinds = list(group)
        blocks.append(PairBlock(slice(kinds[0], kinds[-1] + 1), senders, receivers))
    return blocks


def action_places(topology: Topology, blocks: Sequence[PairBlock]) -> np.ndarray:
    """Returns the place `[A]` of each action in the scores of all blocks, flattened and concatenated.

    The scores of a block are `[R, S, K]` by (receiver, sender, kind).
    """
    places, start = np.zeros(topology.num_actions, np.int32), 0
    indices = topology.action_receivers, topology.action_senders, topology.action_kinds
    for block in blocks:
        extents = block.receivers, block.senders, block.kinds
        shape = [extent.stop - extent.start for extent in extents]
        inside = (topology.action_kinds >= block.kinds.start) & (topology.action_kinds < block.kinds.stop)
        within = tuple(index[inside] - extent.start for index, extent in zip(indices, extents, strict=True))
        places[inside] = start + np.ravel_multi_index(within, shape)
        start += math.prod(shape)
    return places


class DensePerKind(nn.Module):
    """A linear map per kind of action, with the parameters of one `Dense`, each applied where its kind has senders.

    Call: nodes `[B, V, D]` and blocks -> `[B, S * K, D]` by (sender, kind) for each block.
    """

    num_kinds: int
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, nodes: jax.Array, blocks: Sequence[PairBlock]) -> list[jax.Array]:
        batch_size, _, width = nodes.shape
        kernel = self.param("kernel", nn.initializers.lecun_normal(), (width, self.num_kinds * width))
        bias = self.param("bias", nn.initializers.zeros_init(), (self.num_kinds * width,))
        nodes, kernel, bias = promote_dtype(nodes, kernel, bias, dtype=self.dtype)
        outputs = []
        for block in blocks:
            columns = slice(block.kinds.start * width, block.kinds.stop * width)
            output = dot_rows(nodes[:, block.senders], kernel[:, columns]) + bias[None, None, columns]
            outputs.append(output.reshape(batch_size, -1, width))
        return outputs


class ValueHead(nn.Module):
    """Pools the nodes by one learned softmax per pool, so that the result does not scale with the size of the board.

    The initial softmax is sharp. A plain mean over the nodes hardly differs between positions, and LAMB, whose steps
    are proportional to the weights, takes hundreds of updates to amplify the difference.

    Call: nodes `[B, V, D]` -> `[B]` in (-1, 1), or `[B, K]` logits over a support of K returns (`networks.values`),
    from the perspective of the player to move.
    """

    num_pools: int
    support: Support | None = None
    dtype: jnp.dtype = jnp.dtype("float32")

    @nn.compact
    def __call__(self, nodes: jax.Array) -> jax.Array:
        batch_size, _, width = nodes.shape
        # No bias: it would cancel in the softmax over nodes.
        score = Dense(self.num_pools, use_bias=False, kernel_init=scaled_init(4.0), dtype=self.dtype, name="pooling")
        scores = score(nodes)  # [B, V, P]
        weights = jax.nn.softmax(at_least_float32(scores), axis=1).astype(self.dtype)
        pooled = jnp.matmul(jnp.swapaxes(weights, 1, 2), nodes).reshape(batch_size, self.num_pools * width)
        hidden = nn.silu(Dense(width, dtype=self.dtype, name="hidden")(pooled))
        return value_output(hidden, self.support)


def value_output(hidden: jax.Array, support: Support | None) -> jax.Array:
    """Applies the last layer of a value head in float32: `[B, D]` -> `[B]` in (-1, 1), or `[B, K]` logits.

    Call it in a compact method only.
    """
    hidden = at_least_float32(hidden)
    kernel_init = scaled_init(0.2)  # small: initial values are near 0
    if support is None:
        return jnp.tanh(Dense(1, kernel_init=kernel_init, name="value")(hidden)[..., 0])
    from_zero = np.abs(np.arange(len(support)) - np.abs(support).argmin())
    # The initial mean is near 0. Bootstraps from the mean of a wide support would decay slowly.
    bias = -jnp.asarray(from_zero, jnp.float32)
    return Dense(len(support), kernel_init=kernel_init, bias_init=lambda *_: bias, name="value")(hidden)


def scaled_init(scale: float) -> nn.initializers.Initializer:
    """Returns the LeCun normal initializer (LeCun 1998), times `scale`."""
    return nn.initializers.variance_scaling(scale**2, "fan_in", "truncated_normal")


def at_least_float32(array: jax.Array) -> jax.Array:
    """Casts half precision to float32."""
    return array.astype(jnp.promote_types(array.dtype, jnp.float32))


def take_distinct(values: jax.Array, indices: np.ndarray) -> jax.Array:
    """Returns `values[:, indices]` of `[B, M]` values for distinct indices, with a gradient free of scatter.

    Each value is taken at most once, so its gradient is a lookup.
    """
    inverse = np.full(values.shape[1], len(indices), np.int32)
    inverse[indices] = np.arange(len(indices))

    @jax.custom_vjp
    def take(values):
        return values[:, indices]

    def backward(_, gradient):  # [B, A] -> [B, M]; the padded zeros are for values not taken
        return (jnp.pad(gradient, ((0, 0), (0, 1)))[:, inverse],)

    take.defvjp(lambda values: (take(values), None), backward)
    return take(values)


def select_nodes(nodes: jax.Array, indices: np.ndarray) -> jax.Array:
    """Returns `nodes[:, indices]` with a gradient free of scatter, by a slice or a one-hot product."""
    first, count = int(indices[0]), len(indices)
    if np.array_equal(indices, np.arange(first, first + count)):
        return nodes[:, first : first + count]
    one_hot = jax.nn.one_hot(indices, nodes.shape[1], dtype=nodes.dtype)  # [A, V]
    return jnp.matmul(one_hot[None], nodes)
