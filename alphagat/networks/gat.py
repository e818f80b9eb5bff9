"""The graph attention network (GAT)."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from alphagat.graphs.topology import Topology
from alphagat.network_traits import kinds_of_blocks
from alphagat.networks.attention import ATTENTION_BACKENDS, split_heads
from alphagat.networks.auxiliary_heads import AUXILIARY_HEADS
from alphagat.networks.dense import Dense
from alphagat.networks.heads import PolicyHead, ValueHead, scaled_init
from alphagat.networks.mixing import MIXING_BACKENDS
from alphagat.networks.values import Support


class GraphAttentionNetwork(nn.Module):
    """Maps node features to prior logits and a value; no parameter depends on the size of the board.

    Blocks are pre-norm residual (Xiong et al. 2020): messages along typed edges and a parallel global path, then an
    MLP. A message is a weighted sum of the senders' values. The weights come from attention or from signed mixing, or
    are the sum of both; `blocks` names the kinds, which repeat so that the last block has the last kind.

    Call: nodes `[B, V, F]` float32, and if `topology.edges_vary` the edges of each position, `[B, V, V, R]` float32
    (`Game.edges`) -> (prior logits `[B, A]`, not masked; output of the value head from the perspective of the player to
    move: see `networks.values`). `with_auxiliary=True` also returns the predictions of the `auxiliary_heads`, by name.
    """

    topology: Topology
    width: int
    num_blocks: int
    blocks: tuple[str, ...]
    num_heads: int
    key_size: int
    mixing_groups: int
    mlp_ratio: int
    value_pools: int
    backend: str
    value_support: Support | None = None
    dtype: jnp.dtype = jnp.dtype("float32")
    remat: bool = False
    auxiliary_heads: tuple[str, ...] = ()

    @property
    def kinds_of_blocks(self) -> list[str]:
        return kinds_of_blocks(self.blocks, self.num_blocks)

    def setup(self) -> None:
        self.features = Dense(self.width, dtype=self.dtype)
        self.kinds = Dense(self.width, use_bias=False, dtype=self.dtype)
        self.block = [make_block(self, kind, parent=self) for kind in self.kinds_of_blocks]  # block_0, block_1, ...
        self.norm = nn.RMSNorm(dtype=self.dtype)
        self.policy = PolicyHead(self.topology, self.dtype)
        self.value = ValueHead(self.value_pools, self.value_support, self.dtype)
        for name in self.auxiliary_heads:
            setattr(self, name, AUXILIARY_HEADS[name](self.topology, self.dtype))  # an attribute names its parameters

    def __call__(
        self, nodes: jax.Array, edges: jax.Array | None = None, with_auxiliary: bool = False
    ) -> tuple[Any, ...]:
        return self.read_out(self.transform(self.embed(nodes), edges), with_auxiliary)

    def describe(self, nodes: jax.Array, edges: jax.Array | None = None) -> jax.Array:
        """Returns the input of the heads, `[B, V, D]`, for the inputs of the network."""
        return self.norm(self.transform(self.embed(nodes), edges))

    def embed(self, nodes: jax.Array) -> jax.Array:
        """Returns the input of the first block: `[B, V, F]` -> `[B, V, D]`."""
        kinds = jax.nn.one_hot(self.topology.node_kinds, len(self.topology.vocabulary.node_kinds))
        return self.features(nodes) + self.kinds(kinds)[None]

    def transform(self, hidden: jax.Array, edges: jax.Array | None = None) -> jax.Array:
        """Returns the output of the last block, `[B, V, D]`, for the input of the first one."""
        for block in self.block:
            hidden = block(hidden, edges)
        return hidden

    def read_out(self, hidden: jax.Array, with_auxiliary: bool = False) -> tuple[Any, ...]:
        """Returns the outputs of the network for the output `[B, V, D]` of the last block."""
        hidden = self.norm(hidden)
        outputs = self.policy(hidden), self.value(hidden)
        if not with_auxiliary and not self.is_initializing():
            return outputs
        return *outputs, {name: getattr(self, name)(hidden) for name in self.auxiliary_heads}


def make_block(network: GraphAttentionNetwork, kind: str, parent: nn.Module | None = None) -> "MessageBlock":
    """Returns a block of one of `BLOCK_KINDS`, standalone or as a child; blocks of a kind have equal shapes."""
    make = nn.remat(MessageBlock) if network.remat else MessageBlock
    return make(
        topology=network.topology,
        kind=kind,
        num_heads=network.num_heads,
        key_size=network.key_size,
        mixing_groups=network.mixing_groups,
        mlp_ratio=network.mlp_ratio,
        num_blocks=network.num_blocks,
        backend=network.backend,
        dtype=network.dtype,
        parent=parent,
    )


class MessageBlock(nn.Module):
    """Adds messages along edges, a global path and an MLP to each node.

    The global path is a linear map of the mean over nodes. It connects nodes without an edge, at the same scale on
    every board. The initial weights of the residual branches shrink with the number of blocks (Radford et al. 2019,
    section 2.3), so that the features of a node initially dominate the input of the heads.
    """

    topology: Topology
    kind: str
    num_heads: int
    key_size: int
    mixing_groups: int
    mlp_ratio: int
    num_blocks: int
    backend: str
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, hidden: jax.Array, edges: jax.Array | None = None) -> jax.Array:  # [B, V, D] -> [B, V, D]
        assert self.is_initializing() or (edges is not None) == self.topology.edges_vary, (
            "edges must be given if they vary"
        )
        width = hidden.shape[-1]
        branch_scale = (2 * self.num_blocks) ** -0.5
        normed = nn.RMSNorm(dtype=self.dtype, name="attention_norm")(hidden)
        if self.kind == "mixing":
            values = self._dense(width, "mixing_in", use_bias=False)(normed)
            message, out = self._mix(values, edges), "mixing_out"
        else:
            message, out = self._attend(normed, edges), "attention_out"
        hidden += self._dense(width, out, scale=branch_scale)(message)
        hidden += self._dense(width, "global", scale=branch_scale)(normed.mean(axis=1))[:, None]

        normed = nn.RMSNorm(dtype=self.dtype, name="mlp_norm")(hidden)
        expanded = nn.relu(self._dense(self.mlp_ratio * width, "mlp_in")(normed))
        return hidden + self._dense(width, "mlp_out", scale=branch_scale)(expanded)

    def _attend(self, normed: jax.Array, edges: jax.Array | None) -> jax.Array:
        """Returns messages by attention, plus those that mix the same values. Call it in a compact method only."""
        num_relations = len(self.topology.vocabulary.relations)
        relation_bias = self.param("relation_bias", nn.initializers.normal(1.0), (num_relations, self.num_heads))
        features = 2 * self.num_heads * self.key_size + normed.shape[-1]
        projected = self._dense(features, "query_key_value", use_bias=False)(normed)
        query, key, value = split_heads(projected, self.num_heads, self.key_size)
        attended = ATTENTION_BACKENDS[self.backend](query, key, value, relation_bias, self.topology, edges)
        attended = attended.reshape(normed.shape)
        return attended + self._mix(value.reshape(normed.shape), edges) if "mixing" in self.kind else attended

    def _mix(self, values: jax.Array, edges: jax.Array | None) -> jax.Array:
        """Returns `[B, V, D]` for values of this shape. Call it in a compact method only."""
        num_relations = len(self.topology.vocabulary.relations)
        init = nn.initializers.normal(num_relations**-0.5)
        relation_weights = self.param("relation_weights", init, (num_relations, self.mixing_groups))
        groups = values.reshape(*values.shape[:-1], self.mixing_groups, -1)
        return MIXING_BACKENDS[self.backend](groups, relation_weights, self.topology, edges).reshape(values.shape)

    def _dense(self, features: int, name: str, use_bias: bool = True, scale: float = 1.0) -> nn.Dense:
        return Dense(features, use_bias=use_bias, kernel_init=scaled_init(scale), dtype=self.dtype, name=name)
