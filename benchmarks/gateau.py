"""The graph network of AlphaGateau (Rigaux and Kashima 2024), a rival of `screening.py`.

Its edges have features of their own, which each layer updates, and the logit of an action is read from its edge. It is
written from section 3 of the paper and the settings of its code: the features of an edge are part of the message, and
each node also keeps a linear map of itself.

It differs in three ways. Layer norm replaces batch norm, as in AlphaGAT's ResNets. Nodes and edges have AlphaGAT's
features: the relation of an edge instead of the geometry of a move and whether it is legal. An action at one node is
read from the edge from that node to itself.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from alphagat.graphs.topology import Topology
from alphagat.network_traits import NETWORK_TRAITS, NetworkTraits
from alphagat.networks.heads import at_least_float32, take_distinct, value_output
from alphagat.networks.values import Support

AT_ONCE = 2  # positions per part on a CPU core: the fastest of 1, 2, 4, 8 and 16


class GateauNetwork(nn.Module):
    """Residual blocks of two GATEAU layers each.

    Call: nodes `[B, V, F]` float32 -> (prior logits `[B, A]`, not masked; output of the value head from the perspective
    of the player to move: see `alphagat.networks.values`).
    """

    topology: Topology
    width: int
    num_blocks: int
    value_support: Support | None = None
    dtype: jnp.dtype = jnp.dtype("float32")
    remat: bool = False

    @nn.compact
    def __call__(self, nodes: jax.Array, edges: None = None) -> tuple[jax.Array, jax.Array]:
        assert edges is None, "no board of the screening has edges that vary"
        topology, vocabulary = self.topology, self.topology.vocabulary
        kinds = nn.Embed(len(vocabulary.node_kinds), self.width, name="node_kind")(topology.node_kinds)
        nodes = nn.Dense(self.width, name="nodes")(nodes) + kinds[None]
        features = nn.Embed(len(vocabulary.relations), self.width, name="relation")(topology.relations)
        features = jnp.broadcast_to(features, (len(nodes), *features.shape))
        for block in range(self.num_blocks):
            new = nodes, features
            for layer in range(2):
                new = GateauLayer(topology, name=f"layer_{block}_{layer}")(*new)
            nodes, features = nodes + new[0], features + new[1]
        nodes, features = activate(nodes, "node_norm"), activate(features, "edge_norm")
        prior_logits = EdgePolicy(topology, name="policy")(features)
        return prior_logits, value_output(self._pool(nodes), self.value_support)

    def _pool(self, nodes: jax.Array) -> jax.Array:
        """Averages the nodes, weighted by one learned softmax."""
        weights = jax.nn.softmax(nn.Dense(1, name="pooling")(nodes), axis=1)
        return nn.relu((weights * nodes).sum(axis=1))


class EdgePolicy(nn.Module):
    """Scores each action from the features of its edge, once per kind of action.

    Call: features of the edges `[B, E, D]` -> prior logits `[B, A]`.
    """

    topology: Topology

    @nn.compact
    def __call__(self, features: jax.Array) -> jax.Array:
        topology, num_kinds = self.topology, len(self.topology.vocabulary.action_kinds)
        numbers = np.full(topology.relation_matrix.shape, -1)
        numbers[topology.receivers, topology.senders] = np.arange(topology.num_edges)
        edges, places = np.unique(numbers[topology.action_receivers, topology.action_senders], return_inverse=True)
        assert edges[0] >= 0, "an action has no edge"
        hidden = activate(nn.Dense(features.shape[-1], name="hidden")(features[:, edges]), "norm")
        scores = nn.Dense(num_kinds, name="logit")(at_least_float32(hidden))
        return take_distinct(scores.reshape(len(scores), -1), places * num_kinds + topology.action_kinds)


class GateauLayer(nn.Module):
    """Graph attention in which the features of an edge decide its weight and are part of its message.

    Call: nodes `[B, V, D]`, features of the edges `[B, E, D]` -> both, updated.
    """

    topology: Topology

    @nn.compact
    def __call__(self, nodes: jax.Array, features: jax.Array) -> tuple[jax.Array, jax.Array]:
        width, senders, receivers = nodes.shape[-1], self.topology.senders, self.topology.receivers
        nodes, features = activate(nodes, "node_norm"), activate(features, "edge_norm")
        features = nn.Dense(width, name="edge")(features)
        features += nn.Dense(width, name="sender")(nodes)[:, senders]
        features += nn.Dense(width, name="receiver")(nodes)[:, receivers]
        scores = nn.leaky_relu(nn.Dense(1, name="attention")(features))
        exponentials = jnp.exp(scores - scores.max(axis=1, keepdims=True))
        weights = exponentials / self._sum_at_receivers(exponentials)[:, receivers]
        messages = features + nn.Dense(width, name="message")(nodes)[:, senders]
        received = self._sum_at_receivers(weights * messages)
        return received + nn.Dense(width, name="self")(nodes), features

    def _sum_at_receivers(self, values: jax.Array) -> jax.Array:  # [B, E, ...] -> [B, V, ...]
        def sum_one(values: jax.Array) -> jax.Array:
            return jax.ops.segment_sum(values, self.topology.receivers, self.topology.num_nodes)

        return jax.vmap(sum_one)(values)


def activate(features: jax.Array, name: str) -> jax.Array:
    """Applies a layer norm and a ReLU; call it in a compact method only."""
    return nn.relu(nn.LayerNorm(name=name)(features))


NETWORK_TRAITS["gateau"] = NetworkTraits(implementation=f"{__name__}:GateauNetwork", plays_any_size=True)
