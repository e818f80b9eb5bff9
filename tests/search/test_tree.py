"""The recurrent function, against exact values."""

import functools
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.evaluation.solvers import reachable_positions
from alphagat.games import make_game
from alphagat.search import Evaluation
from alphagat.search.tree import invalid_actions, make_recurrent_fn, make_root, policy_value
from tests.evaluation.toy import PileGame, pile_values, piles
from tests.search.evaluators import all_positions, make_exact_evaluator, make_table_evaluator

KEY = jax.random.key(0)
every_board = pytest.mark.parametrize("board", ["tic_tac_toe", "hex:3"])


@functools.cache
def expand(board, make_evaluator):
    """Plays every legal move of every position; returns rows, actions, output and next states."""
    game = make_game(board)
    states, _ = all_positions(game)
    rows, actions = (x.astype(np.int32) for x in np.nonzero(np.asarray(states.legal_action_mask)))
    recurrent_fn = make_recurrent_fn(game, make_evaluator(game))
    output, after = jax.jit(recurrent_fn)(None, KEY, actions, jax.tree.map(lambda x: x[rows], states))
    return rows, actions, jax.tree.map(np.asarray, output), after


@every_board
def test_exact_evaluator_gives_exact_action_values(board):
    rows, actions, output, after = expand(board, make_exact_evaluator)
    solved = reachable_positions(make_game(board))
    backed_up = output.reward + output.discount * output.value
    assert (backed_up == solved.action_values[rows, actions]).all()
    terminated = np.asarray(after.terminated)
    assert (output.value[terminated] == 0).all()
    assert (output.discount == np.where(terminated, 0, -1)).all()
    # Both players win.
    assert set(solved.states.current_player[rows][output.reward == 1].tolist()) == {0, 1}
    assert (output.reward[~terminated] == 0).all()


@every_board
def test_terminal_states_absorb(board):
    game = make_game(board)
    _, _, _, after = expand(board, make_exact_evaluator)
    rows = np.flatnonzero(np.asarray(after.terminated))[:200]
    over = jax.tree.map(lambda x: x[rows], after)
    recurrent_fn = make_recurrent_fn(game, make_exact_evaluator(game))
    output, _ = jax.jit(recurrent_fn)(None, KEY, jnp.arange(len(rows)) % game.num_actions, over)
    for part in (output.reward, output.discount, output.value):
        assert (part == 0).all()


def test_the_value_of_a_policy_without_weight_on_visited_actions_is_that_of_the_visits():
    """A sharp policy may round to 0 on all of them."""
    row = jnp.array([[[0.0, 0.5, -1.0]]])
    tree: Any = SimpleNamespace(
        ROOT_INDEX=0,
        children_visits=jnp.array([[[0, 3, 1]]]),
        children_rewards=0 * row,
        children_discounts=1 + 0 * row,
        children_values=row,
    )
    assert policy_value(tree, jnp.array([[1.0, 0.0, 0.0]])).tolist() == [-0.25]
    np.testing.assert_allclose(policy_value(tree, jnp.array([[0.5, 0.3, 0.2]])), (0.15 - 0.2) / 0.5, rtol=1e-6)


@every_board
def test_illegal_actions_have_zero_prior(board):
    game = make_game(board)
    evaluate = make_table_evaluator(game)
    _, _, output, after = expand(board, make_table_evaluator)
    states, _ = all_positions(game)
    root = make_root(evaluate, None, states)
    for logits, where in ((root.prior_logits, states), (output.prior_logits, after)):
        running = ~np.asarray(where.terminated)
        legal = np.asarray(where.legal_action_mask)[running]
        prior = np.asarray(jax.nn.softmax(logits))[running]
        assert (prior[~legal] == 0).all()
        assert (prior[legal] > 0).all()
        given = np.asarray(evaluate(None, where).prior_logits)[running]
        assert (np.asarray(logits)[running][legal] == given[legal]).all()
    assert (np.asarray(invalid_actions(states)) == ~np.asarray(states.legal_action_mask)).all()


def test_extra_moves_preserve_value_sign():
    game = PileGame(12)
    exact = np.array([0, *(max(pile_values(pile).values()) for pile in range(1, 13))], np.float32)

    def evaluate(params, states):
        value = jnp.where(states.terminated, 100.0, jnp.asarray(exact)[states.pile])
        return Evaluation(jnp.zeros((len(value), 3)), value)

    sizes, actions = np.array([(pile, action) for pile in range(1, 13) for action in pile_values(pile)]).T
    expected = [pile_values(pile)[action] for pile, action in zip(sizes, actions)]
    for player in (0, 1):
        states = piles(sizes).replace(current_player=jnp.full(len(sizes), player, jnp.int8))
        output, _ = make_recurrent_fn(game, evaluate)(None, KEY, jnp.asarray(actions, jnp.int32), states)
        assert (output.reward + output.discount * output.value).tolist() == expected
