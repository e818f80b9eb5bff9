"""Read-outs: the prior where each action lives, the value by attention pooling."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from alphagat.graphs.topology import Topology


class PolicyHead(nn.Module):
    """Scores each action from the node, or the (sender, receiver) pair, where it lives.

    Call: nodes `[B, V, D]` -> prior logits `[B, A]`.
    """

    topology: Topology

    @nn.compact
    def __call__(self, nodes: jax.Array) -> jax.Array:
        width = nodes.shape[-1]
        senders, receivers = self.topology.action_senders, self.topology.action_receivers
        hidden = nn.Dense(width, name="receiver")(select_nodes(nodes, receivers))
        if np.any(senders != receivers):
            hidden += nn.Dense(width, use_bias=False, name="sender")(select_nodes(nodes, senders))
        return nn.Dense(1, name="logit")(nn.silu(hidden))[..., 0]


class ValueHead(nn.Module):
    """Pools the nodes by one learned softmax per head, so that the size of the board does not scale the result.

    Call: nodes `[B, V, D]` -> value `[B]` in (-1, 1), from the view of the player to move.
    """

    num_heads: int

    @nn.compact
    def __call__(self, nodes: jax.Array) -> jax.Array:
        batch_size, _, width = nodes.shape
        # No bias: a softmax over nodes would not see it.
        weights = jax.nn.softmax(nn.Dense(self.num_heads, use_bias=False, name="pooling")(nodes), axis=1)  # [B, V, H]
        pooled = jnp.matmul(jnp.swapaxes(weights, 1, 2), nodes)  # [B, H, D]
        hidden = nn.silu(nn.Dense(width, name="hidden")(pooled.reshape(batch_size, self.num_heads * width)))
        return jnp.tanh(nn.Dense(1, name="value")(hidden)[..., 0])


def select_nodes(nodes: jax.Array, indices: np.ndarray) -> jax.Array:
    """Returns `nodes[:, indices]` with a gradient free of scatter: a slice, or a product with a one-hot matrix."""
    first, count = int(indices[0]), len(indices)
    if np.array_equal(indices, np.arange(first, first + count)):
        return nodes[:, first : first + count]
    one_hot = jax.nn.one_hot(indices, nodes.shape[1], dtype=nodes.dtype)  # [A, V]
    return jnp.matmul(one_hot[None], nodes)
