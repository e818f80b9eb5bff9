"""Extracts the attention weights of a graph attention network."""

from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp

from alphagat.agents.agent import Agent
from alphagat.agents.build import make_portable_network
from alphagat.config import NetworkConfig
from alphagat.errors import UserError
from alphagat.games.states import network_inputs
from alphagat.network_traits import NETWORK_TRAITS, kinds_of_blocks, networks_with
from alphagat.networks.attention import attention_weights, split_heads
from alphagat.networks.gat import GraphAttentionNetwork

PROJECTION = "query_key_value"  # the layer of a block that projects to queries, keys and values


def attention_blocks(network: NetworkConfig) -> list[int]:
    """Returns the numbers of the blocks that attend along edges; none for a network without attention."""
    if not NETWORK_TRAITS[network.name].passes_messages:
        return []
    kinds = kinds_of_blocks(network.blocks, network.num_blocks)
    return [number for number, kind in enumerate(kinds) if "attention" in kind]


def make_attention(agent: Agent) -> Callable[[Any, Any], jax.Array]:
    """Returns `attend(params, states [B])`, which returns the float32 attention weights `[B, blocks, heads, E]` of all
    edges, for the blocks of `attention_blocks`.

    In each block and head, the weights of the edges into a node sum to 1 (`networks.attention`).

    Raises:
      UserError: the network has no attention.
    """
    network, topology = make_portable_network(agent.config, agent.game), agent.game.topology
    attending = attention_blocks(agent.config.network)
    if not attending:
        kinds = networks_with("passes_messages")
        raise UserError(
            f"network {agent.config.network.name}: it has no attention to show; use one that is {kinds} and has "
            "'attention' in config.network.blocks"
        )
    assert isinstance(network, GraphAttentionNetwork)

    @jax.jit
    def attend(params: Any, states: Any) -> jax.Array:
        nodes, edges = network_inputs(agent.game, states)
        _, captured = cast(
            tuple[Any, Any],
            network.apply(params, nodes, edges, capture_intermediates=lambda layer, _: layer.name == PROJECTION),
        )
        blocks = []
        for block in attending:
            (projected,) = captured["intermediates"][f"block_{block}"][PROJECTION]["__call__"]
            query, key, _ = split_heads(projected, network.num_heads, network.key_size)
            bias = params["params"][f"block_{block}"]["relation_bias"]
            weights = attention_weights(query, key, bias, topology, edges)
            blocks.append(weights[..., topology.receivers, topology.senders])
        return jnp.stack(blocks, axis=1)

    return attend
