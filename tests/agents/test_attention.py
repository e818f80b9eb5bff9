"""Attention weights equal those with which the blocks of the network mix values."""

import dataclasses

import jax
import numpy as np
import pytest

import alphagat
from alphagat.agents.attention import attention_blocks, make_attention
from alphagat.agents.build import make_configured_network
from alphagat.errors import UserError
from alphagat.evaluation.openings import random_positions


@pytest.fixture(scope="module")
def agent():
    return alphagat.load("hex", board="hex:3")


def test_the_weights_mix_the_values_of_each_block(agent):
    states = random_positions(agent.game, 4, 0, 5, seed=0)
    weights = make_attention(agent)(agent.params, states)  # [B, blocks, heads, E]
    topology, config = agent.game.topology, agent.config.network
    assert weights.shape == (4, config.num_blocks, config.num_heads, topology.num_edges)

    network = make_configured_network(agent.config, agent.game)
    nodes = jax.jit(jax.vmap(agent.game.observe))(states)
    apply = jax.jit(network.apply, static_argnames="capture_intermediates")
    _, captured = apply(agent.params, nodes, capture_intermediates=True)
    for block in range(config.num_blocks):
        inside = captured["intermediates"][f"block_{block}"]
        params = jax.device_get(agent.params["params"][f"block_{block}"]["attention_out"])
        (projected,), (mixed,) = (inside[name]["__call__"] for name in ("query_key_value", "attention_out"))
        value = np.asarray(projected).reshape(*nodes.shape[:2], config.num_heads, -1)[..., 2 * config.key_size :]
        expected = np.zeros(value.shape, np.float32)
        for edge, (sender, receiver) in enumerate(zip(topology.senders, topology.receivers)):
            expected[:, receiver] += weights[:, block, :, edge, None] * value[:, sender]
        expected = expected.reshape(*nodes.shape[:2], -1) @ params["kernel"] + params["bias"]
        np.testing.assert_allclose(mixed, expected, atol=1e-4)


@pytest.mark.parametrize("changes", [{"name": "resnet"}, {"blocks": ("mixing",)}])
def test_a_network_without_attention_is_refused(agent, changes):
    config = dataclasses.replace(agent.config, network=dataclasses.replace(agent.config.network, **changes))
    other = dataclasses.replace(agent, config=config)
    assert attention_blocks(agent.config.network)
    assert not attention_blocks(config.network)
    with pytest.raises(UserError, match=rf"network {config.network.name}: it has no attention"):
        make_attention(other)


def test_only_some_blocks_attend(agent):
    network = dataclasses.replace(agent.config.network, blocks=("mixing", "mixing+attention"), num_blocks=5)
    assert attention_blocks(network) == [0, 2, 4]
    config = dataclasses.replace(agent.config, network=network)
    nodes = np.zeros((1, agent.game.topology.num_nodes, agent.game.num_features), np.float32)
    params = make_configured_network(config, agent.game).init(jax.random.key(0), nodes)
    other = dataclasses.replace(agent, config=config, params=params)
    weights = make_attention(other)(other.params, random_positions(agent.game, 2, 0, 5, seed=0))
    assert weights.shape == (2, 3, network.num_heads, agent.game.topology.num_edges)
    into = np.zeros((2, 3, network.num_heads, agent.game.topology.num_nodes))
    np.add.at(into, (..., agent.game.topology.receivers), np.asarray(weights))
    np.testing.assert_allclose(into, 1, atol=1e-5)


def test_weights_follow_the_edges_of_each_position():
    agent = alphagat.load("tsp", board="tsp:6")
    topology, states = agent.game.topology, random_positions(agent.game, 4, 2, 3, seed=0)
    weights = np.asarray(make_attention(agent)(agent.params, states))  # [B, blocks, heads, E]
    edges = np.asarray(jax.jit(jax.vmap(agent.game.edges))(states))
    has_edge = edges.any(axis=-1)[:, topology.receivers, topology.senders]
    assert 0 < has_edge.mean() < 1
    assert not (weights * ~has_edge[:, None, None]).any()
    sums = np.zeros((*weights.shape[:3], topology.num_nodes))
    for edge, receiver in enumerate(topology.receivers):
        sums[..., receiver] += weights[..., edge]
    np.testing.assert_allclose(sums, 1, rtol=1e-5)
