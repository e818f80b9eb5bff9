"""Evaluations know the actions that win at once, and are the network's or the mean over its symmetries elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.agents.build import make_configured_network, make_params
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.games.symmetries import Symmetries, permute_actions, permute_edges, permute_nodes
from alphagat.games.tsp import TspGame
from alphagat.search.evaluator import make_network_evaluator, make_plain_evaluator
from alphagat.training.setup import make_setups
from tests.games.playing import play

OPENING = "f5 d6 c5 f4"
BEFORE_THE_LAST_MOVE = f"{OPENING} e7 f6 g5 e6"  # e3 then flips all discs: the shortest game


def test_actions_that_win_at_once_have_the_prior_and_the_value():
    config = Config(boards=("othello:8",))
    config.mesh.data = 1
    (setup,) = make_setups(config)
    game, network = setup.game, setup.network
    params = make_params(game, network, jax.random.key(0))
    states = jax.tree.map(
        lambda *leaves: jnp.stack(leaves), play(game.name, OPENING), play(game.name, BEFORE_THE_LAST_MOVE)
    )
    evaluation = make_network_evaluator(game, network)(params, states)
    logits, values = network.apply(params, jax.vmap(game.observe)(states))
    np.testing.assert_allclose(evaluation.prior_logits[0], logits[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(evaluation.value, [values[0], 1], rtol=1e-5, atol=1e-6)
    assert abs(values[1]) < 0.9
    plain = make_plain_evaluator(game, network)(params, states)
    np.testing.assert_allclose(plain.prior_logits, logits, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(plain.value, values, rtol=1e-5, atol=1e-6)
    prior = jax.nn.softmax(evaluation.prior_logits[1])
    assert game.action_names[int(prior.argmax())] == "e3"
    assert prior.max() == 1


def test_only_legal_actions_win_at_once(monkeypatch):
    game = make_game("tic_tac_toe")
    network = make_configured_network(Config(boards=(game.name,)), game)
    params = make_params(game, network, jax.random.key(0))
    states = jax.tree.map(lambda leaf: leaf[None], play(game.name, "a1 b1"))
    expected = make_network_evaluator(game, network)(params, states)
    monkeypatch.setattr(type(game), "winning_actions", lambda self, state: ~state.legal_action_mask, raising=False)
    jax.tree.map(np.testing.assert_array_equal, make_network_evaluator(game, network)(params, states), expected)


@pytest.mark.parametrize(
    ("board", "says"),
    [
        (
            "tsp:6",
            r"^board tsp:6: edges\(state\) returns None, but edges_vary of its topology is True; return an array",
        ),
        (
            "hex:3",
            r"^board hex:3: edges\(state\) returns an array, but edges_vary of its topology is False; return None",
        ),
    ],
)
def test_edges_that_contradict_the_topology_are_refused(monkeypatch, board, says):
    game = make_game(board)
    network = make_configured_network(Config(boards=(board,)), game)
    wrong = None if game.topology.edges_vary else jnp.zeros((3, 3, 3))
    monkeypatch.setattr(type(game), "edges", lambda self, state: wrong)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    with pytest.raises(UserError, match=says):
        make_network_evaluator(game, network)(None, states)


class WrongNetwork:
    """Returns zeros of the given shapes."""

    value_support = None

    def __init__(self, *shapes):
        self.shapes = shapes

    def apply(self, params, nodes, edges):
        return tuple(jnp.zeros((len(nodes), *shape)) for shape in self.shapes)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (((9,), (1,)), r"^network WrongNetwork: its value must be \[2\], but is \[2, 1\]$"),
        (((10,), ()), r"^network WrongNetwork: its prior logits must be \[2, 9\], but are \[2, 10\]$"),
    ],
)
def test_a_network_with_outputs_of_the_wrong_shape_is_named(shapes, text):
    game = make_game("tic_tac_toe")
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    with pytest.raises(UserError, match=text):
        make_network_evaluator(game, WrongNetwork(*shapes))(None, states)


@pytest.mark.parametrize("num_symmetries", [2, 8])
def test_evaluations_are_means_over_symmetries(num_symmetries: int):
    game = make_game("go:5")
    network = make_configured_network(Config(boards=("go:5",)), game)
    params = make_params(game, network, jax.random.key(0))
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), play("go:5", "c3 d2"), play("go:5", "b2 c4 d4"))
    evaluation = make_network_evaluator(game, network, num_symmetries)(params, states)
    nodes = np.asarray(jax.vmap(game.observe)(states))
    logits, values = np.zeros((2, game.num_actions)), np.zeros(2)
    for index in range(num_symmetries):
        order, actions = (
            table[index] for table in (game.symmetries.node_permutations, game.symmetries.action_permutations)
        )
        image_logits, image_values = network.apply(params, nodes[:, order])
        values += np.asarray(image_values) / num_symmetries
        for image_action, action in enumerate(actions):
            logits[:, action] += np.asarray(image_logits)[:, image_action] / num_symmetries
    np.testing.assert_allclose(evaluation.prior_logits, logits, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(evaluation.value, values, rtol=1e-4, atol=1e-5)


def test_means_over_all_symmetries_are_equal_for_reflected_positions():
    game = make_game("connect_four")
    network = make_configured_network(Config(boards=("connect_four",)), game)
    params = make_params(game, network, jax.random.key(0))
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), play(game.name, "1 1 2 3 3"), play(game.name, "7 7 6 5 5"))
    plain = make_network_evaluator(game, network)(params, states)
    assert not np.allclose(plain.prior_logits[0], plain.prior_logits[1, ::-1], atol=1e-3)
    mean = make_network_evaluator(game, network, 2)(params, states)
    np.testing.assert_allclose(mean.prior_logits[0], mean.prior_logits[1, ::-1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean.value[0], mean.value[1], rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def renumbered():
    """Returns the problem of 6 cities, with 4 numberings of them as symmetries, the network, and positions."""
    game = TspGame(6)
    numberings = np.stack([np.random.default_rng(seed).permutation(6).astype(np.int32) for seed in range(4)])
    numberings[0] = np.arange(6)
    game.symmetries = Symmetries(numberings, numberings)
    network = make_configured_network(Config(boards=("tsp:6",)), game)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(1), 5))
    states = jax.vmap(lambda state: game.step(state, jnp.int32(3), jax.random.key(0)))(states)
    return game, network, make_params(game, network, jax.random.key(0)), states


def test_a_network_on_a_graph_does_not_see_how_nodes_are_numbered(renumbered):
    """So the mean over numberings is the evaluation itself, if edges are renumbered with the nodes."""
    game, network, params, states = renumbered
    plain = make_plain_evaluator(game, network)(params, states)
    mean = make_network_evaluator(game, network, 4)(params, states)
    np.testing.assert_allclose(mean.prior_logits, plain.prior_logits, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean.value, plain.value, rtol=1e-4, atol=1e-5)


def test_renumbered_examples_have_renumbered_logits(renumbered):
    game, network, params, states = renumbered
    nodes, edges, index = jax.vmap(game.observe)(states), jax.vmap(game.edges)(states), jnp.array([0, 1, 2, 3, 1])
    logits, values = network.apply(params, nodes, edges)
    inputs = permute_nodes(nodes, index, game.symmetries), permute_edges(edges, index, game.symmetries)
    found, found_values = network.apply(params, *inputs)
    np.testing.assert_allclose(found, permute_actions(logits, index, game.symmetries), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found_values, values, rtol=1e-4, atol=1e-5)
    assert permute_edges(None, index, game.symmetries) is None
