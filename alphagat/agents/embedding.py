"""Extracts what a graph attention network computes for each node."""

from collections.abc import Callable
from typing import Any, cast

import jax

from alphagat.agents.agent import Agent
from alphagat.agents.build import make_portable_network
from alphagat.errors import UserError
from alphagat.games.states import network_inputs
from alphagat.network_traits import networks_with
from alphagat.networks.gat import GraphAttentionNetwork


def make_embedding(agent: Agent) -> Callable[[Any, Any], jax.Array]:
    """Returns `embed(params, states [B])`, which returns the `[B, V, D]` features of all nodes after the last block, as
    the heads receive them.

    Raises:
      UserError: the network is not made of blocks.
    """
    network = make_portable_network(agent.config, agent.game)
    if not isinstance(network, GraphAttentionNetwork):
        kinds = networks_with("passes_messages")
        raise UserError(f"network {agent.config.network.name}: it has no features of nodes; use one that is {kinds}")

    @jax.jit
    def embed(params: Any, states: Any) -> jax.Array:
        nodes, edges = network_inputs(agent.game, states)
        return cast(jax.Array, network.apply(params, nodes, edges, method=GraphAttentionNetwork.describe))

    return embed
