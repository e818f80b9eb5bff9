"""The graph attention network equals its definition in numpy, and its weights start at their documented scales."""

import jax
import numpy as np
import pytest

from alphagat.games import make_game
from alphagat.graphs.topology import Topology
from alphagat.networks import make_network
from tests.networks.boards import irregular_topology

TOPOLOGIES = {
    "nodes": make_game("hex:2:swap").topology,
    "kinds of pairs": irregular_topology(num_nodes=9, num_actions=6, seed=2),
}
BLOCKS = "mixing", "attention", "mixing+attention"
HEADS, KEY_SIZE, GROUPS, POOLS = 2, 3, 4, 3
SUPPORT = (-1.0, 0.0, 2.0, 5.0)


def gat(topology: Topology, width: int, precision: str = "float64", support: tuple[float, ...] | None = None):
    return make_network(
        topology,
        name="gat",
        backend="dense",
        width=width,
        num_blocks=len(BLOCKS),
        blocks=BLOCKS,
        num_heads=HEADS,
        key_size=KEY_SIZE,
        mixing_groups=GROUPS,
        mlp_ratio=2,
        value_pools=POOLS,
        ownership_head=True,
        precision=precision,
        value_support=support,
    )


def dense(inputs: np.ndarray, layer: dict) -> np.ndarray:
    return inputs @ layer["kernel"] + layer.get("bias", 0)


def norm(inputs: np.ndarray, layer: dict) -> np.ndarray:
    return inputs / np.sqrt((inputs**2).mean(-1, keepdims=True) + 1e-6) * layer["scale"]


def silu(inputs: np.ndarray) -> np.ndarray:
    return inputs / (1 + np.exp(-inputs))


def softmax(logits: np.ndarray, axis: int) -> np.ndarray:
    exponentials = np.exp(logits)
    return exponentials / exponentials.sum(axis, keepdims=True)


def transform(block: dict, kind: str, hidden: np.ndarray, topology: Topology) -> np.ndarray:
    normed = norm(hidden, block["attention_norm"])
    out = block["attention_out" if "attention" in kind else "mixing_out"]
    hidden = hidden + dense(sum_over_senders(block, kind, normed, topology), out)
    hidden = hidden + dense(normed.mean(1, keepdims=True), block["global"])
    expanded = np.maximum(dense(norm(hidden, block["mlp_norm"]), block["mlp_in"]), 0)
    return hidden + dense(expanded, block["mlp_out"])


def sum_over_senders(block: dict, kind: str, normed: np.ndarray, topology: Topology) -> np.ndarray:
    """Returns the messages before their output layer, one receiver at a time."""
    width, relations, messages = normed.shape[-1], topology.relation_matrix, np.zeros_like(normed)
    head_of, group_of = (np.arange(width) * parts // width for parts in (HEADS, GROUPS))
    if "attention" in kind:
        by_head = dense(normed, block["query_key_value"]).reshape(*normed.shape[:2], HEADS, -1)
        query, key, value = np.split(by_head, (KEY_SIZE, 2 * KEY_SIZE), axis=-1)
        value = value.reshape(normed.shape)
    else:
        value = dense(normed, block["mixing_in"])
    for receiver in range(topology.num_nodes):
        senders = np.flatnonzero(relations[receiver] >= 0)
        typed, weights = relations[receiver, senders], np.zeros((len(normed), len(senders), width))
        if "attention" in kind:
            logits = np.einsum("bhk,bshk->bsh", query[:, receiver], key[:, senders]) * KEY_SIZE**-0.5
            weights += softmax(logits + block["relation_bias"][typed], 1)[..., head_of]
        if "mixing" in kind:
            shares = np.array([(typed == relation).sum() for relation in typed])[:, None]
            weights += (block["relation_weights"][typed] / shares)[:, group_of]
        messages[:, receiver] = (weights * value[:, senders]).sum(1)
    return messages


def policy_logits(head: dict, nodes: np.ndarray, topology: Topology) -> np.ndarray:
    senders, receivers = topology.action_senders, topology.action_receivers
    if (senders == receivers).all():
        return dense(silu(dense(nodes[:, receivers], head["receiver"])), head["logit"])[..., 0]
    hidden, width = silu(dense(nodes, head["node"])), nodes.shape[-1]
    by_kind = dense(hidden, head["sender"]).reshape(*nodes.shape[:2], -1, width)
    sent = by_kind[:, senders, topology.action_kinds]
    return (dense(hidden, head["receiver"])[:, receivers] * sent).sum(-1) / np.sqrt(width)


def evaluate(params: dict, nodes: np.ndarray, topology: Topology) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns prior logits, the output of the last layer of the value head, and the ownership."""
    hidden = dense(nodes, params["features"]) + params["kinds"]["kernel"][topology.node_kinds]
    for number, kind in enumerate(BLOCKS):
        hidden = transform(params[f"block_{number}"], kind, hidden, topology)
    hidden = norm(hidden, params["norm"])
    value, owner = params["value"], params["ownership"]
    pooled = np.einsum("bvp,bvd->bpd", softmax(dense(hidden, value["pooling"]), 1), hidden)
    output = dense(silu(dense(pooled.reshape(len(nodes), -1), value["hidden"])), value["value"])
    ownership = np.tanh(dense(silu(dense(hidden, owner["hidden"])), owner["ownership"])[..., 0])
    return policy_logits(params["policy"], hidden, topology), output, ownership


@pytest.mark.parametrize(("name", "support"), [("nodes", None), ("kinds of pairs", SUPPORT)])
def test_the_network_equals_its_definition(name: str, support: tuple[float, ...] | None):
    topology, generator = TOPOLOGIES[name], np.random.default_rng(0)
    nodes, network = generator.normal(size=(2, topology.num_nodes, 5)), gat(topology, 8, support=support)
    with jax.enable_x64(True):
        shapes = jax.eval_shape(network.init, jax.random.key(0), nodes)
        params = jax.tree.map(lambda x: generator.normal(0, 0.5, x.shape), shapes)
        logits, output, auxiliary = jax.jit(lambda *inputs: network.apply(*inputs, with_auxiliary=True))(params, nodes)
    expected, last, ownership = evaluate(params["params"], nodes, topology)
    np.testing.assert_allclose(logits, expected, rtol=1e-6)  # the shares of mixing are float32
    np.testing.assert_allclose(output, last if support else np.tanh(last[:, 0]), rtol=1e-6)
    np.testing.assert_allclose(auxiliary["ownership"], ownership, rtol=1e-6)


def test_weights_start_at_their_scales():
    """Kernels have a variance of 1 / inputs; the residual branches and the last layer of the value have less."""
    game = make_game("gardner_chess")
    nodes = np.zeros((1, game.topology.num_nodes, game.num_features), np.float32)
    params = jax.jit(gat(game.topology, 64, "float32", SUPPORT).init)(jax.random.key(0), nodes)["params"]
    scales = dict.fromkeys(("attention_out", "mixing_out", "global", "mlp_out"), (2 * len(BLOCKS)) ** -0.5)
    scales |= {"pooling": 4.0, "value": 0.2}
    of_relations = {"relation_bias": 1.0, "relation_weights": len(game.topology.vocabulary.relations) ** -0.5}
    value_bias = params["value"]["value"].pop("bias")
    assert value_bias.tolist() == [-1, 0, -1, -2]  # the likeliest return is 0
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        *_, layer, name = (key.key for key in path)
        if name in ("bias", "scale"):
            assert (leaf == (name == "scale")).all(), path
            continue
        expected = of_relations.get(name) or scales.get(layer, 1.0) * leaf.shape[0] ** -0.5
        tolerance = 4 * (2 * leaf.size) ** -0.5  # four standard errors of a standard deviation
        assert float(np.std(leaf)) == pytest.approx(expected, rel=tolerance), path
