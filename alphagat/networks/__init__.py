"""Networks: `(features, params) -> (prior_logits, value)`.

A network is a flax module whose only variables are parameters. `network.init(key, nodes)` creates them.
`network.apply(params, nodes)` maps node features `[B, V, F]` to prior logits `[B, A]`, including illegal actions, and
the output of the value head, which `values.expected_value` turns into values `[B]` from the view of the player to move.
A network with auxiliary heads also returns their predictions, by name, on `apply(params, nodes, with_auxiliary=True)`.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp

from alphagat.graphs.topology import Topology
from alphagat.networks.auxiliary_heads import AUXILIARY_HEADS
from alphagat.networks.gat import GraphAttentionNetwork
from alphagat.networks.pipeline import PipelinedNetwork
from alphagat.networks.resnet import ResidualNetwork
from alphagat.networks.values import Support

Network = GraphAttentionNetwork | ResidualNetwork | PipelinedNetwork
# `alphagat.network_traits` declares the properties of each network.
NETWORKS = {"gat": GraphAttentionNetwork, "resnet": ResidualNetwork}


def make_network(
    topology: Topology,
    *,
    name: str,
    precision: str = "float32",
    value_support: Support | None = None,
    **options: Any,
) -> Network:
    """Returns the network called `name` in `NETWORKS`.

    Args:
      precision: the dtype of the blocks: float32, bfloat16 or float16. Parameters, softmaxes and the outputs of the
        heads are float32 in any case.
      options: the other fields of `NetworkConfig`; a network takes those that are also fields of its class.
        `NAME_head=True` adds the auxiliary head called NAME.
    """
    options["dtype"] = jnp.dtype(precision)
    options["auxiliary_heads"] = tuple(head for head in AUXILIARY_HEADS if options.get(f"{head}_head"))
    accepted = {field.name for field in dataclasses.fields(NETWORKS[name])}
    chosen = {option: value for option, value in options.items() if option in accepted}
    return NETWORKS[name](topology, value_support=value_support, **chosen)
