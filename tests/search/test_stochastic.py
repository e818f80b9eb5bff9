"""Search with chance, against the exact values of 2048 on four cells."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest
from scipy.special import log_softmax, rel_entr

from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.search import Evaluation, make_search
from alphagat.search.stochastic import Node, make_chance_recurrent_fn

GAME = make_game("2048:2")
BASE = 6  # exponents on four cells are 0 to 5
POWERS = BASE ** np.arange(4)
LOGITS = np.random.default_rng(0).normal(size=(BASE**4, 4)).astype(np.float32)
KEY = jax.random.key(0)


class Solved(NamedTuple):
    states: object  # [S], every reachable state that is not over
    action_values: np.ndarray  # [S, A], -inf where illegal
    values: np.ndarray  # [BASE ** 4], by the code of the board, 0 where the game is over


def code(boards):
    return boards.astype(np.int32) @ jnp.asarray(POWERS, jnp.int32)


@functools.cache
def solve() -> Solved:
    """Finds the value of every position by expectimax, in float64; moves only ever add to the sum of the tiles."""
    boards = np.stack(np.meshgrid(*[np.arange(BASE)] * 4, indexing="ij"), -1).reshape(-1, 4).astype(np.int8)
    boards = boards[(boards > 0).sum(1) >= 2]
    first = GAME.init(KEY)
    spread = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(boards), *x.shape)), first)
    states = spread.replace(board=jnp.asarray(boards), terminated=jnp.zeros(len(boards), bool))
    legal = np.asarray(states.legal_action_mask)
    after = jax.vmap(jax.vmap(GAME.move, (None, 0)), (0, None))(states, jnp.arange(4))
    chance = np.exp(np.asarray(jax.vmap(jax.vmap(GAME.chance_log_probs))(after), np.float64))
    chance[~legal] = 0
    outcomes = jnp.arange(GAME.num_chance_outcomes)
    reached = jax.vmap(jax.vmap(jax.vmap(GAME.resolve, (None, 0)), (0, None)), (0, None))(after, outcomes)
    follow = (np.asarray(reached.board, np.int64) * POWERS).sum(-1)  # [S, A, C]
    rewards = np.asarray(after.rewards, np.float64)[..., 0]
    values, codes = np.zeros(BASE**4), (boards.astype(np.int64) * POWERS).sum(1)
    action_values = np.full(legal.shape, -np.inf)
    for row in np.argsort(-np.exp2(boards, where=boards > 0, out=np.zeros(boards.shape)).sum(1), kind="stable"):
        if legal[row].any():
            expected = (chance[row] * np.where(chance[row] > 0, values[follow[row] % BASE**4], 0)).sum(-1)
            action_values[row] = np.where(legal[row], rewards[row] + expected, -np.inf)
            values[codes[row]] = action_values[row].max()
    going = legal.any(1) & (boards <= 4).all(1)
    return Solved(jax.tree.map(lambda x: x[going], states), action_values[going], values)


def exact_evaluator(params, states):
    value = jnp.where(states.terminated, 1e6, jnp.asarray(solve().values, jnp.float32)[code(states.board)])
    return Evaluation(jnp.where(states.legal_action_mask, jnp.asarray(LOGITS)[code(states.board)], 9.0), value)


@pytest.fixture(scope="module")
def solved():
    return solve()


@pytest.fixture(scope="module")
def expand():
    return jax.jit(make_chance_recurrent_fn(GAME, exact_evaluator))


def nodes_of(states, awaits_chance):
    return Node(states, jnp.full(states.terminated.shape, awaits_chance))


def test_move_value_is_reward_plus_expected_value_after_chance(solved, expand):
    rows, actions = (x.astype(np.int32)[::7] for x in np.nonzero(np.isfinite(solved.action_values)))
    draws = 400
    states = jax.tree.map(lambda x: jnp.repeat(x[rows], draws, axis=0), solved.states)
    output, nodes = expand(None, KEY, jnp.repeat(jnp.asarray(actions), draws), nodes_of(states, False))
    found = np.asarray(output.reward + output.discount * output.value).reshape(-1, draws)
    error = found.mean(1) - solved.action_values[rows, actions]
    assert (np.abs(error) <= 4.5 * found.std(1) / np.sqrt(draws) + 1e-3).all()
    assert found.std() > 1  # it draws, and does not average
    assert np.asarray(nodes.awaits_chance).all()
    assert (np.asarray(output.discount) == 1).all()
    assert (np.asarray(output.prior_logits)[:, :4] < -1e30).all()


def test_chance_outcome_leads_to_its_state_without_reward(solved, expand):
    states = jax.tree.map(lambda x: x[:64], solved.states)
    actions = np.argmax(solved.action_values[:64], axis=1).astype(np.int32)
    after = jax.vmap(GAME.move)(states, actions)
    outcomes = np.asarray(jax.vmap(GAME.chance_log_probs)(after)).argmax(1)
    output, nodes = expand(None, KEY, jnp.asarray(4 + outcomes, jnp.int32), nodes_of(after, True))
    wanted = jax.vmap(GAME.resolve)(after, outcomes)
    assert (np.asarray(nodes.state.board) == np.asarray(wanted.board)).all()
    assert not np.asarray(nodes.awaits_chance).any()
    assert (np.asarray(output.reward) == 0).all()
    over = np.asarray(wanted.terminated)
    assert over.any()
    assert (np.asarray(output.value)[over] == 0).all()
    assert (np.asarray(output.discount) == np.where(over, 0, 1)).all()
    values = solved.values[np.asarray(code(wanted.board))]
    np.testing.assert_allclose(np.asarray(output.value)[~over], values[~over], rtol=1e-6)


def test_terminal_states_have_zero_value(expand):
    over = jax.tree.map(lambda x: x[None], GAME.init(KEY)).replace(
        board=jnp.asarray([[1, 2, 3, 1]], jnp.int8), terminated=jnp.ones(1, bool), rewards=jnp.full((1, 1), 8.0)
    )
    for awaits_chance in (False, True):
        output, nodes = expand(None, KEY, jnp.zeros(1, jnp.int32), nodes_of(over, awaits_chance))
        assert (float(output.reward[0]), float(output.discount[0]), float(output.value[0])) == (0, 0, 0)
        assert np.isfinite(np.asarray(output.prior_logits)).all()
        assert (np.asarray(nodes.state.board) == np.asarray(over.board)).all()


@pytest.fixture(scope="module")
def search():
    """Returns a compiled search of states at some plies, to their outputs and trees; it explores until ply 5."""
    trees = []
    listen = mctx.search

    def keep(*arguments, **keywords):
        trees.append(listen(*arguments, **keywords))
        return trees[-1]

    options = {"algorithm": "gumbel", "num_simulations": 64, "exploration_plies": 5}
    explore = make_search(GAME, exact_evaluator, explore=True, **options)
    run = jax.jit(lambda states, plies: (explore(None, KEY, states, plies), trees.pop()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mctx, "search", keep)
        yield lambda states, plies: jax.tree.map(np.asarray, run(states, plies))


@pytest.fixture(scope="module")
def searched(solved, search):
    """A search of every position without noise, and its tree."""
    return search(solved.states, np.full(len(solved.action_values), 5, np.int32))


def test_search_finds_the_best_move(solved, searched):
    found, _ = searched
    rows = np.arange(len(found.action))
    chosen, best = solved.action_values[rows, found.action], solved.action_values.max(1)
    assert np.isfinite(chosen).all(), "a move is illegal"
    worst = np.where(np.isfinite(solved.action_values), solved.action_values, np.inf).min(1)
    clear = best - worst > 12
    assert clear.sum() > 50
    assert (chosen == best)[clear].mean() > 0.9
    legal = np.isfinite(solved.action_values)
    assert (found.policy_target[~legal] == 0).all()
    np.testing.assert_allclose(found.policy_target.sum(1), 1, rtol=1e-5)
    assert found.policy_target.shape == legal.shape


def test_target_is_the_softmax_of_logits_and_completed_values(solved, searched):
    """Danihelka et al. 2022, equation 11 and appendix D, in numpy; and the move, value and surprise that follow."""
    found, tree = searched
    legal, rows = np.isfinite(solved.action_values), np.arange(len(found.action))
    visits = tree.children_visits[:, 0, :4].astype(np.float64)
    values = (tree.children_rewards + tree.children_discounts * tree.children_values)[:, 0, :4].astype(np.float64)
    evaluation = exact_evaluator(None, solved.states)
    logits = log_softmax(np.where(legal, np.asarray(evaluation.prior_logits, np.float64), -np.inf), axis=1)
    prior, total = np.exp(logits), visits.sum(axis=1)
    of_visited = (prior * values * (visits > 0)).sum(axis=1) / (prior * (visits > 0)).sum(axis=1)
    mixed = (np.asarray(evaluation.value, np.float64) + total * of_visited) / (1 + total)
    completed = np.where(visits > 0, values, mixed[:, None])
    columns = np.column_stack([completed, mixed])  # the outcomes of chance count as actions without a visit
    spread = np.maximum(np.ptp(columns, axis=1), 1.0)
    rescaled = (completed - columns.min(axis=1, keepdims=True)) / spread[:, None]
    improved = logits + (50 + visits.max(axis=1, keepdims=True)) * 0.5 * rescaled
    target = np.exp(log_softmax(improved, axis=1))
    np.testing.assert_allclose(found.policy_target, target, atol=1e-4)
    most = np.where(visits == visits.max(axis=1, keepdims=True), improved, -np.inf)
    np.testing.assert_allclose(most[rows, found.action], most.max(axis=1), atol=1e-3)
    weights = target * (visits > 0)
    np.testing.assert_allclose(found.value, (weights * values).sum(axis=1) / weights.sum(axis=1), rtol=1e-4)
    np.testing.assert_allclose(found.surprise, rel_entr(target, prior).sum(axis=1), atol=1e-3)


def test_noise_ends_with_the_exploration(solved, search, searched):
    plies = np.arange(len(solved.action_values), dtype=np.int32) % 10
    visits = search(solved.states, plies)[0].root.visits
    differ = (visits != searched[0].root.visits).any(axis=1)
    assert not differ[plies >= 5].any()
    assert differ[plies < 5].mean() > 0.05


def test_value_is_in_points_and_close_to_exact(solved, searched):
    found, _ = searched
    exact = solved.action_values.max(1)
    assert np.corrcoef(found.value, exact)[0, 1] > 0.95
    assert abs((found.value - exact).mean()) < 0.1 * exact.mean()


def test_chance_outcomes_are_visited_in_proportion_to_probability(searched):
    _, tree = searched
    nodes, visits = tree.embeddings, tree.children_visits
    busy = nodes.awaits_chance & (tree.node_visits > 1) & ~nodes.state.terminated
    probabilities = np.exp(tree.children_prior_logits[busy][:, 4:])
    counts = visits[busy][:, 4:]
    assert (counts[probabilities < 1e-9] == 0).all()
    assert (visits[busy][:, :4] == 0).all()
    fours = counts[:, 1::2].sum() / counts.sum()
    assert fours == pytest.approx(0.1, abs=0.02)
    # Cells are equally likely, whatever their number.
    cells = counts.reshape(len(counts), 4, 2).sum(-1)
    expected = (counts.sum(1, keepdims=True) * probabilities).reshape(len(counts), 4, 2).sum(-1)
    np.testing.assert_allclose(cells.sum(0), expected.sum(0), rtol=0.06)


def test_puct_is_rejected():
    with pytest.raises(UserError, match=r"config\.search\.algorithm='puct'"):
        make_search(GAME, exact_evaluator, algorithm="puct", num_simulations=4, explore=False)
