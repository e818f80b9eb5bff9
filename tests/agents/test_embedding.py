"""The features of the nodes are those from which the heads predict."""

import dataclasses

import jax
import numpy as np
import pytest

import alphagat
from alphagat.agents.embedding import make_embedding
from alphagat.errors import UserError
from alphagat.networks.heads import PolicyHead, ValueHead
from alphagat.networks.values import expected_value


@pytest.mark.parametrize("board", ["hex:4", "tsp:5"])
def test_the_heads_predict_the_evaluation_from_the_features(board: str):
    agent = alphagat.load("shipped", board=board)
    topology, network, support = agent.game.topology, agent.config.network, agent.game.value_support
    states = jax.jit(jax.vmap(agent.game.init))(jax.random.split(jax.random.key(0), 2))
    features = make_embedding(agent)(agent.params, states)
    assert features.shape == (2, topology.num_nodes, network.width)
    heads = agent.params["params"]
    logits = jax.jit(PolicyHead(topology).apply)({"params": heads["policy"]}, features)
    output = jax.jit(ValueHead(network.value_pools, support).apply)({"params": heads["value"]}, features)
    evaluation = jax.jit(agent.evaluator)(agent.params, states)
    np.testing.assert_allclose(logits, evaluation.prior_logits, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(expected_value(output, support), evaluation.value, rtol=1e-4, atol=1e-4)


def test_a_network_without_features_of_nodes_is_refused():
    agent = alphagat.load("hex", board="hex:3")
    config = dataclasses.replace(agent.config, network=dataclasses.replace(agent.config.network, name="resnet"))
    with pytest.raises(UserError, match=r"^network resnet: it has no features of nodes; use one that is 'gat'$"):
        make_embedding(dataclasses.replace(agent, config=config))
