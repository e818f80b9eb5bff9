"""Analysis agrees with the rules, the search tree, the player, and exact values."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.agents.analysis import Analyzer
from alphagat.config import EvaluationConfig
from alphagat.errors import UserError
from alphagat.evaluation.openings import random_positions
from alphagat.evaluation.solvers import reachable_positions
from alphagat.games import make_game
from alphagat.games.states import first_state
from alphagat.search.tree import VARIATION_LENGTH
from tests.search.evaluators import make_table_evaluator, make_tree_search, some_positions, uniform_evaluator
from tests.serving.agents import make_agent

KEY = jax.random.key(0)
GAME = make_game("tic_tac_toe")
NUM_SIMULATIONS = 40
POSITIONS = 300
every_algorithm = pytest.mark.parametrize("algorithm", ["gumbel", "puct"])


def agent_of(algorithm):
    return make_agent("tic_tac_toe", make_table_evaluator(GAME), algorithm)


@functools.cache
def analyze(algorithm):
    """Returns nonterminal positions on the host and their analyses."""
    states, _ = some_positions(GAME, POSITIONS)
    states = jax.tree.map(np.asarray, states)
    return states, Analyzer(agent_of(algorithm), NUM_SIMULATIONS)(states, KEY)


def one(states, row):
    return jax.tree.map(lambda x: x[row], states)


@every_algorithm
def test_priors_and_values_equal_the_network(algorithm):
    states, analysis = analyze(algorithm)
    evaluation = make_table_evaluator(GAME)(None, states)
    logits = np.where(states.legal_action_mask, np.asarray(evaluation.prior_logits, np.float64), -np.inf)
    prior = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(analysis.prior, prior, atol=1e-6)
    assert (analysis.prior[~states.legal_action_mask] == 0).all()
    np.testing.assert_array_equal(analysis.network_value, evaluation.value)


@every_algorithm
def test_chooses_the_move_of_the_player(algorithm):
    states, analysis = analyze(algorithm)
    player = agent_of(algorithm).player(NUM_SIMULATIONS)
    np.testing.assert_array_equal(analysis.action, jax.jit(player.act)(player.params, KEY, states))
    np.testing.assert_array_equal(analysis.variation[:, 0], analysis.action)
    np.testing.assert_array_equal(analysis.variation, analysis.variations[np.arange(POSITIONS), analysis.action])


def search_with_tree(algorithm, states):
    """Returns the output of mctx for the same positions, with its tree."""
    evaluate = make_table_evaluator(GAME)
    options = {"num_simulations": NUM_SIMULATIONS, "value_scale": EvaluationConfig().value_scale}
    search = make_tree_search(GAME, evaluate, algorithm=algorithm, explore=False, **options)
    return jax.tree.map(np.asarray, search(KEY, states, jnp.zeros(POSITIONS, jnp.int32)))


@every_algorithm
def test_statistics_equal_the_tree(algorithm):
    states, analysis = analyze(algorithm)
    output, tree = search_with_tree(algorithm, states)
    assert (analysis.visits.sum(axis=1) == NUM_SIMULATIONS).all()
    np.testing.assert_array_equal(analysis.visits, tree.children_visits[:, 0])
    np.testing.assert_allclose(analysis.policy, output.policy_target, atol=1e-6)
    np.testing.assert_allclose(analysis.value, output.value, atol=1e-6)
    np.testing.assert_array_equal(np.isnan(analysis.action_values), analysis.visits == 0)
    for row in range(POSITIONS):  # the mean over the nodes below, each value from the perspective of its player to move
        for action in np.flatnonzero(analysis.visits[row]):
            expected = mean_below(tree, row, tree.children_index[row, 0, action], int(states.current_player[row]))
            assert analysis.action_values[row, action] == pytest.approx(expected, abs=1e-5)


def mean_below(tree, row, node, player):
    """Returns the mean value of the simulations through `node`, from the perspective of `player`."""
    found, below = [], [node]
    while below:
        node = below.pop()
        state = one(tree.embeddings, (row, node))
        children = [int(child) for child in tree.children_index[row, node] if child >= 0]
        below += children if not state.terminated else []
        if state.terminated:  # each later simulation through this node added one node below it
            parent, action = tree.parents[row, node], tree.action_from_parent[row, node]
            mover = int(one(tree.embeddings, (row, parent)).current_player)
            pays = tree.children_rewards[row, parent, action] * (1 if mover == player else -1)
            found += [pays] * int(tree.node_visits[row, node])
        else:
            value = tree.raw_values[row, node]
            found.append(value if int(state.current_player) == player else -value)
    return np.mean(found)


@every_algorithm
def test_variations_are_legal_and_in_the_tree(algorithm):
    states, analysis = analyze(algorithm)
    _, tree = search_with_tree(algorithm, states)
    step = jax.jit(GAME.step)
    ends, lengths = 0, []
    for row in range(0, POSITIONS, 15):
        for action in range(9):
            moves = analysis.variations[row, action].tolist()
            length = moves.index(-1) if -1 in moves else VARIATION_LENGTH
            assert moves[0] == action
            assert moves[length:] == [-1] * (VARIATION_LENGTH - length)
            if analysis.visits[row, action] == 0:
                assert length == 1
                continue
            state, node = step(one(states, row), action, KEY), tree.children_index[row, 0, action]
            for move in moves[1:length]:
                assert state.legal_action_mask[move]
                assert tree.children_visits[row, node, move] == tree.children_visits[row, node].max()
                state, node = step(state, move, KEY), tree.children_index[row, node, move]
            assert state.terminated or tree.children_visits[row, node].max() == 0
            ends += bool(state.terminated)
            lengths.append(length)
    assert ends > 10
    assert len(set(lengths)) > 2


@every_algorithm
def test_finds_a_win_in_one_for_both_players(algorithm):
    everything = reachable_positions(GAME)
    states = everything.states
    after = jax.vmap(jax.vmap(GAME.step, (None, 0, None)), (0, None, None))(states, jnp.arange(9), KEY)
    wins = (np.asarray(after.rewards) != 0).any(axis=-1) & np.asarray(states.legal_action_mask)
    rows = np.flatnonzero(wins.sum(axis=1) == 1)[::7]
    assert set(states.current_player[rows].tolist()) == {0, 1}
    agent = make_agent("tic_tac_toe", uniform_evaluator, algorithm)
    analysis = Analyzer(agent, NUM_SIMULATIONS)(one(states, rows), KEY)
    assert wins[rows, analysis.action].all()
    assert (analysis.action_values[np.arange(len(rows)), analysis.action] == 1).all()
    assert (analysis.variation[:, 1] == -1).all()
    assert (analysis.value > 0.4).all()


def test_without_simulations_only_the_network_counts():
    states, searched = analyze("gumbel")
    analysis = Analyzer(agent_of("gumbel"), 0)(states, KEY)
    for name in ("prior", "network_value"):
        np.testing.assert_array_equal(getattr(analysis, name), getattr(searched, name))
    np.testing.assert_array_equal(analysis.policy, analysis.prior)
    np.testing.assert_array_equal(analysis.value, analysis.network_value)
    np.testing.assert_array_equal(analysis.action, analysis.prior.argmax(axis=1))
    assert (analysis.visits == 0).all()
    assert np.isnan(analysis.action_values).all()
    np.testing.assert_array_equal(analysis.variation[:, 0], analysis.action)
    assert (analysis.variation[:, 1:] == -1).all()
    assert analysis._fields == searched._fields
    for ours, theirs in zip(analysis, searched):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)


def test_a_variation_ends_at_a_chance_node():
    game = make_game("2048:2")
    states = jax.tree.map(np.asarray, random_positions(game, 16, 0, 4, seed=0))
    analysis = Analyzer(make_agent("2048:2", uniform_evaluator), NUM_SIMULATIONS)(states, KEY)
    assert (analysis.visits.sum(axis=1) == NUM_SIMULATIONS).all()
    assert (analysis.visits[~states.legal_action_mask] == 0).all()
    assert states.legal_action_mask[np.arange(16), analysis.action].all()
    np.testing.assert_array_equal(analysis.variation[:, 0], analysis.action)
    assert (analysis.variation[:, 1:] == -1).all()
    # Rewards are never negative, so a move is worth at least its immediate reward.
    move = jax.vmap(jax.vmap(game.move, (None, 0)), (0, None))
    pays = np.asarray(move(states, jnp.arange(4)).rewards)[..., 0]
    visited = analysis.visits > 0
    assert (analysis.action_values[visited] >= pays[visited]).all()
    assert (pays[visited] > 0).any()


def test_refuses_a_negative_number_of_simulations():
    with pytest.raises(UserError, match="simulations -1: it must be 0"):
        Analyzer(agent_of("gumbel"), -1)


def test_refuses_a_state_that_is_no_batch():
    analyze = Analyzer(agent_of("gumbel"), 2)
    state = first_state(make_game("tic_tac_toe"))
    with pytest.raises(UserError, match=r"^states: it must be a batch \[B\]; for one state, pass .*batch_of_one"):
        analyze(state, jax.random.key(0))
