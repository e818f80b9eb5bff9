"""The growing search against PUCT in plain Python, exact values, and the rules."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.evaluation.solvers import position_code, reachable_positions
from alphagat.games import make_game
from alphagat.games.states import first_state
from alphagat.search import Evaluation, make_search
from alphagat.search.growing_search import make_growing_search
from tests.evaluation.toy import PileGame, pile_values, piles
from tests.search import puct
from tests.search.evaluators import WILD, make_exact_evaluator, some_positions, uniform_evaluator
from tests.search.one_position import make_batched_growing_search

KEY = jax.random.key(0)
TIC_TAC_TOE, PILE = make_game("tic_tac_toe"), PileGame(12)
NUM_SIMULATIONS = 60
every_game = pytest.mark.parametrize("game", [TIC_TAC_TOE, PILE], ids=["alternating", "extra moves"])
every_num_leaves = pytest.mark.parametrize("num_leaves", [1, 2, 8])


@functools.cache
def make_evaluator(game):
    """Gives logits and values without equals, the highest logits to illegal actions, and nonsense at the end."""
    generator = np.random.default_rng(1)
    logits = generator.normal(0, 1.5, (3**9, game.num_actions)).astype(np.float32)
    values = generator.uniform(-0.9, 0.9, 3**9).astype(np.float32)

    def evaluate(params, states):
        code = states.pile if isinstance(game, PileGame) else position_code(game, states)
        legal = states.legal_action_mask
        prior_logits = jnp.where(legal, jnp.asarray(logits)[code], 9.0)
        return Evaluation(prior_logits, jnp.where(states.terminated, WILD, jnp.asarray(values)[code]))

    return evaluate


@functools.cache
def compiled(game, evaluate, num_leaves, capacity=NUM_SIMULATIONS):
    search = make_growing_search(game, evaluate, capacity=capacity, num_leaves=num_leaves)
    return [jax.jit(f) for f in (search.start, search.grow, search.read)]


def grow(game, evaluate, state, num_leaves, *numbers, limit=NUM_SIMULATIONS):
    """Returns the tree, on the host, after growing to each of these numbers of simulations, and what is read of it."""
    start, grow_, read = compiled(game, evaluate, num_leaves)
    tree = start(None, state)
    for number in numbers:
        tree = grow_(None, tree, number, limit)
    return jax.tree.map(np.asarray, (tree, read(tree)))


def test_discount_prefers_immediate_win():
    everything = reachable_positions(TIC_TAC_TOE)
    after = jax.vmap(jax.vmap(TIC_TAC_TOE.step, (None, 0, None)), (0, None, None))(
        everything.states, jnp.arange(9), KEY
    )
    at_once = (np.asarray(after.rewards) != 0).any(axis=-1) & np.asarray(everything.states.legal_action_mask)
    rows = np.flatnonzero(at_once.any(axis=1) & ((everything.action_values == 1) & ~at_once).any(axis=1))[::40]
    options = {"num_simulations": 96, "num_leaves": 2}
    found = {}
    for discount in (0.7, 1.0):
        search = make_batched_growing_search(
            TIC_TAC_TOE, make_exact_evaluator(TIC_TAC_TOE), **options, discount=discount
        )
        act = jax.jit(
            lambda state, search=search: search(None, KEY, jax.tree.map(lambda x: x[None], state), 0).action[0]
        )
        moves = [int(act(jax.tree.map(lambda x, row=row: x[row], everything.states))) for row in rows]
        found[discount] = at_once[rows, moves].mean()
    assert len(rows) > 10
    assert found[0.7] == 1 > found[1.0]


def positions(game):
    states = piles([3, 5, 8, 12]) if game is PILE else some_positions(game, 12)[0]
    return [jax.tree.map(lambda x, row=row: x[row], states) for row in range(len(states.terminated))]


@every_game
def test_puct_of_a_batch_matches_the_plain_reference(game):
    evaluate, states = make_evaluator(game), positions(game)
    search = make_search(game, evaluate, algorithm="puct", num_simulations=NUM_SIMULATIONS, explore=False)
    batch = jax.tree.map(lambda *x: jnp.stack(x), *states)
    output = jax.jit(search)(None, KEY, batch, jnp.zeros(len(states), jnp.int32))
    for row, state in enumerate(states):
        expected = puct.grow(game, evaluate, state, NUM_SIMULATIONS, num_leaves=1)
        for action, returns in expected.returns.items():
            assert output.root.visits[row, action] == len(returns)
            if returns:
                assert output.root.action_values[row, action] == pytest.approx(np.mean(returns), abs=1e-4)


@every_num_leaves
@every_game
def test_matches_plain_puct_reference(game, num_leaves):
    evaluate, sizes = make_evaluator(game), []
    for state in positions(game):
        tree, output = grow(game, evaluate, state, num_leaves, NUM_SIMULATIONS)
        expected = puct.grow(game, evaluate, state, NUM_SIMULATIONS, num_leaves)
        pending, nodes = [(0, expected)], set()
        while pending:
            node, theirs = pending.pop()
            nodes.add(node)
            for action, returns in theirs.returns.items():
                assert tree.visits[node, action] == len(returns)
                assert tree.sums[node, action] == pytest.approx(sum(returns), abs=1e-4)
            assert tree.visits[node].sum() == sum(map(len, theirs.returns.values()))
            pending += [(int(tree.children[node, action]), child) for action, child in theirs.children.items()]
            if not theirs.state.terminated:
                np.testing.assert_array_equal(theirs.state.legal_action_mask, tree.prior[node] > 0)
        assert nodes == set(range(tree.num_nodes))
        means = {a: np.mean(found) for a, found in expected.returns.items() if found}
        best = max(means, key=lambda a: (len(expected.returns[a]), means[a]))
        assert output.action == [best]
        mean = (expected.value + sum(map(sum, expected.returns.values()))) / (1 + NUM_SIMULATIONS)
        assert output.value[0] == pytest.approx(mean, abs=1e-5)
        for action, mean in means.items():
            assert output.root.action_values[0, action] == pytest.approx(mean, abs=1e-5)
        sizes.append(int(tree.num_nodes))
    assert max(sizes) > NUM_SIMULATIONS / 3


@every_num_leaves
@every_game
def test_counts_and_masks(game, num_leaves):
    evaluate = make_evaluator(game)
    for state in positions(game):
        tree, output = grow(game, evaluate, state, num_leaves, NUM_SIMULATIONS)
        num_nodes = int(tree.num_nodes)
        assert tree.visits[0].sum() == NUM_SIMULATIONS
        assert (tree.waiting == 0).all()
        legal = np.asarray(jax.vmap(lambda state: state.legal_action_mask)(tree.states))
        assert (tree.visits[:num_nodes][~legal[:num_nodes]] == 0).all()
        assert (tree.children[:num_nodes][~legal[:num_nodes]] == -1).all()
        np.testing.assert_allclose(output.policy_target[0], tree.visits[0] / NUM_SIMULATIONS, rtol=1e-6)
        np.testing.assert_array_equal(output.root.visits, tree.visits[:1])
        np.testing.assert_array_equal(np.isnan(output.root.action_values), tree.visits[:1] == 0)
        assert (output.root.variations[0, :, 0] == np.arange(game.num_actions)).all()
        for move in output.root.variations[0, output.action[0]]:
            if move >= 0:
                assert state.legal_action_mask[move]
                state = game.step(state, jnp.int32(move), KEY)


def test_a_legal_action_stays_legal_if_its_prior_underflows():
    def evaluate(params, states):
        return Evaluation(
            jnp.full(states.legal_action_mask.shape, -1e30).at[:, 4].set(0.0), jnp.zeros(len(states.terminated))
        )

    tree, _ = grow(TIC_TAC_TOE, evaluate, first_state(TIC_TAC_TOE), 1, NUM_SIMULATIONS)
    num_nodes = int(tree.num_nodes)
    legal = np.asarray(jax.vmap(lambda state: state.legal_action_mask)(tree.states))
    assert ((tree.prior > 0) == legal)[:num_nodes].all()


@every_num_leaves
def test_growing_in_parts_equals_growing_at_once(num_leaves):
    """A tree that rested is the one that never did; it never holds more than it can."""
    game, evaluate = TIC_TAC_TOE, make_evaluator(TIC_TAC_TOE)
    state = first_state(game)
    at_once, _ = grow(game, evaluate, state, num_leaves, NUM_SIMULATIONS)
    in_steps, _ = grow(game, evaluate, state, num_leaves, 0, 7, 7, 30, NUM_SIMULATIONS)
    jax.tree.map(np.testing.assert_array_equal, in_steps, at_once)
    rested, _ = grow(game, evaluate, state, num_leaves, 7)
    assert 7 <= rested.visits[0].sum() < 7 + num_leaves
    cut, _ = grow(game, evaluate, state, num_leaves, 25, limit=25)
    assert cut.visits[0].sum() == 25
    full, _ = grow(game, evaluate, state, num_leaves, 10 * NUM_SIMULATIONS, limit=10 * NUM_SIMULATIONS)
    assert full.visits[0].sum() == NUM_SIMULATIONS


def contents(tree, node=0):
    """Returns what is known of each line of play from a node on, by its moves."""
    found, pending = {}, [((), int(node))]
    while pending:
        line, node = pending.pop()
        arrays = tree.visits, tree.sums, tree.prior, tree.raw_values, tree.waiting, *jax.tree.leaves(tree.states)
        found[line] = [x[node] for x in arrays] + [x[node] for x in (tree.rewards, tree.discounts) if line]
        for action, child in enumerate(tree.children[node]):
            if child >= 0:
                assert tree.parents[child] == node
                assert tree.actions[child] == action
                pending.append(((*line, action), int(child)))
    return found


def assert_alike(one, other):
    assert one.keys() == other.keys()
    for line, arrays in one.items():
        for mine, theirs in zip(arrays, other[line], strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-6)


def same_state(tree, node, state):
    return all(jax.tree.leaves(jax.tree.map(lambda x, y: np.array_equal(x[node], y), tree.states, state)))


@every_num_leaves
@every_game
def test_resume_keeps_subtree_and_grows_it(game, num_leaves):
    """It holds what lay below, and grows as it would have where each simulation had to go there."""
    evaluate, more = make_evaluator(game), 12
    resume = jax.jit(make_growing_search(game, evaluate, capacity=NUM_SIMULATIONS, num_leaves=num_leaves).resume)
    _, grow_, _ = compiled(game, evaluate, num_leaves)
    depths = set()
    for state in positions(game):
        tree, output = grow(game, evaluate, state, num_leaves, 40)
        action = int(output.action[0])
        child = int(tree.children[0, action])
        for node in (child, int(tree.children[child].max())):
            if node < 0 or tree.states.terminated[node]:
                continue
            there = jax.tree.map(lambda x, node=node: x[node], tree.states)
            kept = jax.tree.map(np.asarray, resume(None, tree, there))
            # The same position may stand elsewhere, too: what was searched most of it is kept.
            alike = [i for i in range(int(tree.num_nodes)) if same_state(tree, i, there)]
            node = max(alike, key=lambda i: tree.visits[i].sum())
            assert_alike(contents(kept), contents(tree, node))
            used = np.arange(len(kept.parents)) < kept.num_nodes
            assert used.sum() == len(contents(kept))
            for table in (kept.visits, kept.sums, kept.prior, kept.parents, kept.waiting):
                assert not table[~used].any()
            assert (kept.children[~used] == -1).all()
            depths.add(1 if node == child else 2)
            if node != child:
                continue
            number = int(kept.visits[0].sum()) + more
            grown = jax.tree.map(np.asarray, grow_(None, kept, number, number))
            only = np.where(np.arange(game.num_actions) == action, tree.prior[0], 0)
            forced = tree._replace(prior=np.concatenate([only[None], tree.prior[1:]]))
            number = int(tree.visits[0].sum()) + more
            forced = jax.tree.map(np.asarray, grow_(None, forced, number, number))
            assert_alike(contents(grown), contents(forced, child))
            depths.add("grown")
    assert depths == {1, 2, "grown"}


def test_resume_starts_over_from_unknown_position():
    game, evaluate = TIC_TAC_TOE, make_evaluator(TIC_TAC_TOE)
    search = make_growing_search(game, evaluate, capacity=NUM_SIMULATIONS, num_leaves=1)
    first, *_, last = positions(game)
    tree, _ = grow(game, evaluate, first, 1, 40)
    found = jax.jit(search.resume)(None, tree, last)
    jax.tree.map(np.testing.assert_array_equal, found, search.start(None, last))


def test_without_simulations_prior_decides():
    state = first_state(TIC_TAC_TOE)
    tree, output = grow(TIC_TAC_TOE, make_evaluator(TIC_TAC_TOE), state, 1, 0)
    assert output.action == [tree.prior[0].argmax()]
    np.testing.assert_array_equal(output.policy_target, tree.prior[:1])
    assert output.value == tree.raw_values[:1]


@every_num_leaves
def test_finds_forced_wins(num_leaves):
    """From nothing but the rules, in positions of both players, and in piles with moves in a row."""
    solved = reachable_positions(TIC_TAC_TOE)
    matters = (solved.action_values == 1).sum(axis=1) == 1
    late = (solved.action_values != -2).sum(axis=1) <= 6
    rows = np.flatnonzero(matters & late)
    rows = np.random.default_rng(0).choice(rows, 40, replace=False)
    assert set(solved.states.current_player[rows].tolist()) == {0, 1}
    start, grow_, read = compiled(TIC_TAC_TOE, uniform_evaluator, num_leaves, 400)
    for row in rows:
        state = jax.tree.map(lambda x, row=row: jnp.asarray(x[row]), solved.states)
        output = read(grow_(None, start(None, state), 400, 400))
        assert solved.action_values[row, output.action[0]] == 1
        assert output.value[0] > 0.3
    start, grow_, read = compiled(PILE, uniform_evaluator, num_leaves, 400)
    for size in range(2, 8):
        state = jax.tree.map(lambda x: x[0], piles([size]))
        output, values = read(grow_(None, start(None, state), 400, 400)), pile_values(size)
        assert values[int(output.action[0])] == max(values.values())
        assert np.sign(output.value[0]) == max(values.values())


def test_has_the_common_search_interface():
    search = make_batched_growing_search(TIC_TAC_TOE, make_evaluator(TIC_TAC_TOE), num_simulations=20, num_leaves=4)
    states, plies = some_positions(TIC_TAC_TOE, 1)
    output = jax.jit(search)(None, KEY, states, plies)
    assert output.action.shape == output.value.shape == (1,)
    assert output.policy_target.shape == (1, 9)
    assert output.root.visits.sum() == 20


def test_rejects_chance_games():
    with pytest.raises(
        UserError, match="board 2048: this search needs a game for two players without chance; take another"
    ):
        make_growing_search(make_game("2048"), uniform_evaluator, capacity=8, num_leaves=2)
