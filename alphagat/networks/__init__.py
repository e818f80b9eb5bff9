"""Networks: `(features, params) -> (prior_logits, value)`.

A network is a flax module whose only variables are parameters. `network.init(key, nodes)` makes them and
`network.apply(params, nodes)` maps node features `[B, V, F]` to prior logits `[B, A]`, illegal actions included, and
the output of the value head, which `values.expected_value` turns into values `[B]` from the view of the player to move.
A network with an `ownership_head` returns a third result, `[B, V]`, where it is asked for it: `apply(params, nodes,
with_ownership=True)`.
"""

import jax.numpy as jnp

from alphagat.graphs.topology import Topology
from alphagat.networks.gat import GraphAttentionNetwork
from alphagat.networks.pipeline import PipelinedNetwork
from alphagat.networks.resnet import ResidualNetwork
from alphagat.networks.values import Support

Network = GraphAttentionNetwork | ResidualNetwork | PipelinedNetwork


def make_network(
    topology: Topology,
    *,
    name: str,
    backend: str,
    width: int,
    num_blocks: int,
    num_heads: int,
    mlp_ratio: int,
    precision: str = "float32",
    remat: bool = False,
    ownership_head: bool = False,
    value_support: Support | None = None,
) -> Network:
    """Returns the network called `name`: `gat` or `resnet`.

    Args:
      precision: what blocks compute in: float32, bfloat16 or float16. Parameters, softmaxes and what the heads give
        are float32 in any case.
      remat: the backward pass computes each block again instead of keeping what is inside it.
      ownership_head: of `gat`, which then also predicts who holds each node in the end.
    """
    dtype = jnp.dtype(precision)
    if name == "resnet":
        return ResidualNetwork(topology, width, num_blocks, value_support, dtype, remat)
    return GraphAttentionNetwork(
        topology, width, num_blocks, num_heads, mlp_ratio, backend, value_support, dtype, remat, ownership_head
    )
