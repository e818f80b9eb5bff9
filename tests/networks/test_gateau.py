"""The network of AlphaGateau, a rival in the benchmarks, follows the equations of its paper."""

import runpy
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.games import make_game
from alphagat.network_traits import NETWORK_TRAITS

BENCHMARK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "gateau.py"))
del NETWORK_TRAITS["gateau"]  # which the benchmark declares


def dense(params, x):
    return x @ params["kernel"] + params["bias"]


def activated(params, x):
    """Normalizes each row, and drops what is negative."""
    normed = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    return np.maximum(normed * params["scale"] + params["bias"], 0)


def slow_layer(params, topology, nodes, features):
    """Follows Rigaux and Kashima 2024, section 3.2, in float64, one edge after the other."""
    nodes, features = activated(params["node_norm"], nodes), activated(params["edge_norm"], features)
    new_features, scores = np.zeros_like(features), np.zeros(topology.num_edges)
    for edge, (sender, receiver) in enumerate(zip(topology.senders, topology.receivers)):
        new_features[edge] = dense(params["edge"], features[edge]) + dense(params["sender"], nodes[sender])
        new_features[edge] += dense(params["receiver"], nodes[receiver])
        score = dense(params["attention"], new_features[edge])[0]
        scores[edge] = score if score > 0 else 0.01 * score
    new_nodes = dense(params["self"], nodes)
    for receiver in range(topology.num_nodes):
        edges = np.flatnonzero(topology.receivers == receiver)
        weights = np.exp(scores[edges]) / np.exp(scores[edges]).sum()
        for edge, weight in zip(edges, weights):
            message = dense(params["message"], nodes[topology.senders[edge]]) + new_features[edge]
            new_nodes[receiver] += weight * message
    return new_nodes, new_features


def test_a_layer_equals_its_equations():
    topology = make_game("hex:2").topology
    keys = jax.random.split(jax.random.key(0), 3)
    nodes = jax.random.normal(keys[0], (2, topology.num_nodes, 5))
    features = jax.random.normal(keys[1], (2, topology.num_edges, 5))
    layer = BENCHMARK["GateauLayer"](topology)
    params = jax.jit(layer.init)(keys[2], nodes, features)
    params = jax.tree.map(lambda x: x + 0.3 * jax.random.normal(keys[2], x.shape), params)
    found = jax.jit(layer.apply)(params, nodes, features)
    exact = jax.tree.map(lambda x: np.asarray(x, np.float64), (params["params"], nodes, features))
    for row in range(2):
        expected = slow_layer(exact[0], topology, exact[1][row], exact[2][row])
        np.testing.assert_allclose(found[0][row], expected[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found[1][row], expected[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("board", ["hex:2", "breakthrough:5", "gardner_chess"])
def test_an_action_is_read_from_its_edge(board):
    """A change of the features of one edge changes the logits of the actions there, and of no others."""
    game = make_game(board)
    topology = game.topology
    network = BENCHMARK["GateauNetwork"](topology, width=4, num_blocks=1)
    nodes = jnp.zeros((1, topology.num_nodes, game.num_features))
    params = jax.jit(network.init)(jax.random.key(0), nodes)
    logits, value = jax.jit(network.apply)(params, nodes)
    assert (logits.shape, value.shape) == ((1, game.num_actions), (1,))
    features = jax.random.normal(jax.random.key(1), (1, topology.num_edges, 4))
    policy = BENCHMARK["EdgePolicy"](topology)
    score = jax.jit(lambda features: policy.apply({"params": params["params"]["policy"]}, features))
    sender, receiver = topology.action_senders[0], topology.action_receivers[0]
    (edge,) = np.flatnonzero((topology.senders == sender) & (topology.receivers == receiver))
    changed = score(features.at[0, edge].add(jnp.arange(4.0)))[0] != score(features)[0]
    here = (topology.action_senders == sender) & (topology.action_receivers == receiver)
    np.testing.assert_array_equal(changed, here)
