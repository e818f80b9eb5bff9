"""Networks: `(features, params) -> (prior_logits, value)`.

A network is a flax module whose only variables are parameters. `network.init(key, nodes)` makes them and
`network.apply(params, nodes)` maps node features `[B, V, F]` to prior logits `[B, A]`, illegal actions included, and
values `[B]` in (-1, 1) from the view of the player to move.
"""

import flax.linen as nn

from alphagat.graphs.topology import Topology
from alphagat.networks.gat import GraphAttentionNetwork
from alphagat.networks.resnet import ResidualNetwork


def make_network(
    topology: Topology, *, name: str, backend: str, width: int, num_blocks: int, num_heads: int, mlp_ratio: int
) -> nn.Module:
    """Returns the network called `name`: `gat` or `resnet`."""
    if name == "resnet":
        return ResidualNetwork(topology, width, num_blocks)
    return GraphAttentionNetwork(topology, width, num_blocks, num_heads, mlp_ratio, backend)
