import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.evaluation import mcts
from alphagat.evaluation.mcts import ILLEGAL, UNVISITED, make_mcts, most_visited, select_uct
from alphagat.evaluation.solvers import solve
from alphagat.games import make_game
from alphagat.games.states import first_state
from tests.evaluation.toy import PileGame, pile_values, piles
from tests.evaluation.uct import Reference

KEY = jax.random.key(0)
BATCH = 1000  # one shape, so that tests share programs


@functools.cache
def _search(game, num_simulations):
    return jax.jit(make_mcts(game, num_simulations))


def _state(game, actions):
    state = first_state(game)
    for action in actions:
        state = jax.jit(game.step)(state, jnp.int32(action), KEY)
    return state


def _batch(state, num):
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (num, *x.shape)), state)


@pytest.mark.parametrize(
    ("board", "actions"), [("tic_tac_toe", (0, 4)), ("tic_tac_toe", (0, 1, 4)), ("hex:3", (4,)), ("hex:3", (2, 4, 7))]
)
def test_statistics_match_a_slow_reference(board, actions):
    game, solver, num_simulations, num_runs = make_game(board), solve(board), 60, 200
    tree = _search(game, num_simulations)(KEY, _batch(_state(game, actions), BATCH))
    position = tuple(sum(1 << action for action in actions[player::2]) for player in (0, 1))
    runs = [Reference(solver, seed).search(position, num_simulations) for seed in range(num_runs)]
    visits, means = (np.array(part, float) for part in zip(*runs, strict=True))
    values = np.asarray(tree.sums[0] / jnp.maximum(tree.visits[0], 1))
    for ours, reference in ((np.asarray(tree.visits[0]), visits), (values, means)):
        error = np.sqrt(ours.var(axis=0) / len(ours) + reference.var(axis=0) / num_runs)
        assert (abs(ours.mean(axis=0) - reference.mean(axis=0)) < 4.5 * error + 1e-6).all()


def test_tree_is_consistent():
    game, num_simulations = make_game("tic_tac_toe"), 60
    tree = _search(game, num_simulations)(KEY, _batch(_state(game, (0, 4, 8)), BATCH))
    legal = np.asarray(tree.states.legal_action_mask)
    visits = np.asarray(tree.visits)
    assert (visits[0].sum(axis=-1) == num_simulations).all()
    linked = np.asarray(tree.children) != UNVISITED
    assert (visits[~legal] == 0).all()
    assert ((visits > 0) == linked).all()
    assert (np.asarray(tree.order) >= 0)[0].sum() == BATCH * 6
    assert (abs(np.asarray(tree.sums)) <= visits).all()
    # Below a child, all its visits but the one that added it.
    node, game_index, action = np.nonzero(linked)
    child = np.asarray(tree.children)[linked]
    below = visits[child, game_index].sum(axis=-1)
    over = np.asarray(tree.states.terminated)[child, game_index]
    assert over.any()
    assert (below == np.where(over, 0, visits[node, game_index, action] - 1)).all()


def test_each_simulation_has_its_own_key(monkeypatch):
    monkeypatch.setattr(mcts, "rollout", lambda game, key, states: jax.random.uniform(key, states.terminated.shape))
    tree = make_mcts(PileGame(40), 3)(KEY, piles([40]))
    assert tree.visits[0, 0].tolist() == [1, 1, 1]
    assert len(set(abs(tree.sums[0, 0]).tolist())) == 3


def test_unvisited_actions_come_first_in_uniform_order():
    game = make_game("tic_tac_toe")
    tree = _search(game, 60)(KEY, _batch(_state(game, ()), BATCH))
    children = np.asarray(tree.children[0])
    assert (np.sort(children, axis=1) == np.arange(1, 10)).all()
    counts = (children == 1).sum(axis=0)
    assert ((counts - BATCH / 9) ** 2 / (BATCH / 9)).sum() < 26.1  # 8 degrees of freedom: once in a thousand


def test_uct_formula():
    visits = np.array([10.0, 5.0, 3.0, 2.0])
    means = np.array([0.5, -0.2, 0.9, -1.0])
    score = (means + 1) / 2 + 1.4 * np.sqrt(np.log(20) / visits)
    order = np.array([0.1, 0.2, 0.3, 0.4])
    for dropped in range(4):  # each time without the best so far
        chosen = select_uct(jnp.array([order]), jnp.array([visits]), jnp.array([means * visits]))
        assert chosen.tolist() == [np.argmax(np.where(order >= 0, score, -1))]
        order[chosen[0]] = ILLEGAL
        assert (order < 0).sum() == dropped + 1


def test_takes_immediate_wins_and_blocks():
    game = make_game("tic_tac_toe")
    search = _search(game, 60)
    tree = search(KEY, _batch(_state(game, (0, 3, 1, 4)), BATCH))
    assert (most_visited(KEY, tree) == 2).all()
    # The exact reward counts in every visit of the winning move.
    assert (tree.sums[0, :, 2] == tree.visits[0, :, 2]).all()
    tree = search(KEY, _batch(_state(game, (0, 4, 1)), BATCH))
    assert (most_visited(KEY, tree) == 2).mean() > 0.85


def test_extra_moves_preserve_value_sign():
    game = PileGame(9)
    sizes = [size for size in range(3, 9) if len(set(pile_values(size).values())) == 2]
    tree = _search(game, 400)(KEY, piles(sizes * 8))
    for size, action in zip(sizes * 8, most_visited(KEY, tree).tolist(), strict=True):
        assert pile_values(size)[action] == 1


def test_terminal_roots_are_not_searched():
    game = make_game("tic_tac_toe")
    over, running = (_batch(_state(game, moves), BATCH // 2) for moves in ((0, 3, 1, 4, 2), (0, 3)))
    tree = _search(game, 60)(KEY, jax.tree.map(lambda *parts: jnp.concatenate(parts), over, running))
    assert tree.visits[0].sum(axis=-1).tolist() == [0] * (BATCH // 2) + [60] * (BATCH // 2)
    assert np.isfinite(tree.sums).all()


def test_ties_between_most_visited_moves_break_randomly():
    game = make_game("tic_tac_toe")
    tree = _search(game, 60)(KEY, _batch(_state(game, (4,)), BATCH))
    tied = tree._replace(visits=jnp.full_like(tree.visits, 7.0).at[:, :, 8].set(6.0))
    assert np.unique(most_visited(KEY, tied)).tolist() == [0, 1, 2, 3, 5, 6, 7]
