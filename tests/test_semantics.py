"""Semantics shared by all packages: one test per rule, with tables and exact values instead of a network."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from alphagat.config import Config
from alphagat.evaluation.arena import play_match
from alphagat.evaluation.openings import distinct_openings
from alphagat.evaluation.players import search_player
from alphagat.evaluation.solvers import position_code, reachable_positions
from alphagat.games import make_game
from alphagat.games.transition import transition
from alphagat.learner.update import TrainState, make_health
from alphagat.networks.attention import dense_attention
from alphagat.networks.heads import ValueHead
from alphagat.replay import add, make_replay
from alphagat.runtime import sharding
from alphagat.search import make_search
from alphagat.search.tree import make_recurrent_fn
from alphagat.selfplay.games_in_flight import make_play, start_games
from alphagat.selfplay.targets import value_targets
from alphagat.training.iteration import draw_batch, make_iteration, run_iteration
from alphagat.training.plan import make_plan
from alphagat.training.setup import Setup
from alphagat.training.state import BoardState, RunState, Sample, state_shardings
from tests.evaluation.toy import PileGame, piles
from tests.search.evaluators import (
    all_positions,
    make_exact_evaluator,
    make_table_evaluator,
    make_tree_search,
    some_positions,
    uniform_evaluator,
)
from tests.selfplay.toy import MarkedGame, random_search

KEY = jax.random.key(0)
every_board = pytest.mark.parametrize("board", ["tic_tac_toe", "hex:3"])


@every_board
def test_discount(board):
    """-1 if the player changed, +1 if not, 0 at the end."""
    game = make_game(board)
    states, _ = all_positions(game)
    rows, actions = (x.astype(np.int32) for x in np.nonzero(np.asarray(states.legal_action_mask)))
    before = jax.tree.map(lambda x: x[rows], states)
    after = jax.jit(jax.vmap(game.step, (0, 0, None)))(before, actions, KEY)
    discount = np.asarray(jax.vmap(transition)(before, after).discount)
    assert (discount == np.where(after.terminated, 0, -1)).all()
    assert set(discount.tolist()) == {0, -1}


def test_a_discount_per_move():
    """A value target is the result, for its player to move, times the discount per remaining move."""
    game = make_game("tic_tac_toe")
    play = make_play(game, random_search, num_plies=30, max_plies=9, opening_plies=0, discount=0.9)
    games = start_games(game, KEY, num_games=20, num_waiting=0, opening_plies=0)
    _, history = jax.jit(play)(None, KEY, games)
    targets, history = np.asarray(value_targets(history, 1.0)), jax.tree.map(np.asarray, history)
    checked = 0
    for number in range(20):
        ends = np.flatnonzero(history.ended[:, number])
        for ply in range(ends[-1] + 1):
            end = ends[ends >= ply][0]
            sign = 1 if history.state.current_player[ply, number] == history.state.current_player[end, number] else -1
            result = history.reward[end, number] * sign * 0.9 ** (end - ply)
            np.testing.assert_allclose(targets[ply, number], result, rtol=1e-5)
            checked += abs(result) not in (0, 1)
    assert checked > 100


def test_discount_with_consecutive_moves():
    before, game = piles([5, 5, 5, 2, 1]), PileGame(9)
    after = jax.vmap(game.step, (0, 0, None))(before, jnp.array([0, 1, 2, 1, 0]), KEY)
    assert jax.vmap(transition)(before, after).discount.tolist() == [-1, 1, -1, 0, 0]
    assert jax.vmap(lambda *states: transition(*states, 0.5))(before, after).discount.tolist() == [
        -0.5,
        0.5,
        -0.5,
        0,
        0,
    ]
    alone = MarkedGame(lengths=(3,), num_players=1)
    state, discounts = alone.init(KEY), []
    for _ in range(3):
        state, old = alone.step(state, 0, KEY), state
        discounts.append([float(transition(old, state, per_move).discount) for per_move in (1.0, 0.5)])
    assert discounts == [[1, 0.5], [1, 0.5], [0, 0]]


@every_board
def test_reward_and_value(board):
    """The reward is the mover's, the value the next player's; one step from an exact value gives an exact value."""
    game = make_game(board)
    states, _ = all_positions(game)
    rows, actions = (x.astype(np.int32) for x in np.nonzero(np.asarray(states.legal_action_mask)))
    before = jax.tree.map(lambda x: x[rows], states)
    output, _ = jax.jit(make_recurrent_fn(game, make_exact_evaluator(game)))(None, KEY, actions, before)
    backed_up = output.reward + output.discount * output.value
    assert (np.asarray(backed_up) == reachable_positions(game).action_values[rows, actions]).all()


def test_terminal_in_the_search():
    """The value of a terminal state is 0, whatever the evaluator returns."""
    game = make_game("tic_tac_toe")
    states, plies = some_positions(game, 200)
    search = make_tree_search(game, make_exact_evaluator(game), algorithm="gumbel", num_simulations=16, explore=False)
    found, tree = jax.tree.map(np.asarray, search(KEY, states, plies))
    over = tree.embeddings.terminated & (tree.node_visits > 0)
    assert over.sum() > 100
    assert (tree.node_values[over] == 0).all()
    assert (tree.children_discounts[over] * tree.children_values[over] == 0).all()
    assert (abs(found.value) <= 1).all()


@functools.cache
def play_toy(max_plies):
    """Plays forty plies of games of 2 or 20 plies; returns them with their targets."""
    game = MarkedGame()
    games = start_games(game, KEY, num_games=50, num_waiting=0, opening_plies=0)
    play = jax.jit(make_play(game, random_search, num_plies=40, max_plies=max_plies, opening_plies=0))
    _, history = play(None, KEY, games)
    return jax.tree.map(np.asarray, (history, value_targets(history, 1.0)))


def test_terminal_in_self_play():
    """The position before the last move is stored; the next position starts a new game."""
    history, _ = play_toy(20)
    assert not history.state.terminated.any()
    assert (history.ended == (history.state.ply == history.state.length - 1)).all()
    ended = history.ended[:-1]
    assert (history.state.ply[1:][ended] == 0).all()
    assert (history.state.serial[1:][ended] != history.state.serial[:-1][ended]).all()
    assert (history.discount[history.ended] == 0).all()


def test_truncation_at_the_ply_cap():
    """Truncation is distinct from termination and pays the truncation rewards: 0.5 to player 0."""
    history, targets = play_toy(5)
    cut = (history.state.length == 20) & (history.state.ply == 4)
    assert (history.truncated == cut).all()
    assert (history.ended == (cut | (history.state.ply == history.state.length - 1))).all()
    # Player 0 moves at ply 4; action 1 pays an additional 0.25.
    assert set(targets[cut].tolist()) == {0.5, 0.75}
    # No target includes the next game: a game pays at most 1, plus 0.25 per ply.
    assert (abs(targets) <= 1 + 5 / 4).all()


@functools.cache
def explore(algorithm):
    """Returns search trees of an evaluator that prefers illegal actions."""
    game = make_game("hex:3")
    states, plies = some_positions(game, 200)
    evaluate = make_table_evaluator(game)
    options = {"max_num_considered_actions": 4, "temperature": 0.1}
    search = make_tree_search(game, evaluate, algorithm=algorithm, num_simulations=20, explore=True, **options)
    return states, *jax.tree.map(np.asarray, search(KEY, states, plies))


@pytest.mark.parametrize("algorithm", ["gumbel", "puct"])
def test_legality(algorithm):
    """No illegal action is visited, at the root or below."""
    states, found, tree = explore(algorithm)
    legal = np.asarray(states.legal_action_mask)
    assert legal[np.arange(len(legal)), found.action].all()
    assert (found.policy_target[~legal] == 0).all()
    running = (tree.node_visits > 0) & ~tree.embeddings.terminated
    visited = (tree.children_visits > 0) & running[..., None]
    assert visited[:, 1:].sum() > 500
    assert not (visited & (tree.embeddings.cells != 0)).any()


def test_policy_target():
    """Gumbel: softmax of logits and completed Q-values; PUCT: visit counts at any temperature."""
    _, found, tree = explore("puct")
    np.testing.assert_allclose(found.policy_target, tree.children_visits[:, 0] / 20, rtol=1e-6)
    states, found, tree = explore("gumbel")
    legal = np.asarray(states.legal_action_mask)
    np.testing.assert_allclose(found.policy_target.sum(axis=1), 1, rtol=1e-5)
    # Unvisited legal actions share one completed value, so their weights are proportional to the prior.
    unvisited = (tree.children_visits[:, 0] == 0) & legal
    (rows,) = np.nonzero(unvisited.sum(axis=1) >= 2)
    assert len(rows) > 5
    logits = np.asarray(make_table_evaluator(make_game("hex:3"))(None, states).prior_logits)
    for row in rows:
        offset = np.log(found.policy_target[row, unvisited[row]]) - logits[row, unvisited[row]]
        np.testing.assert_allclose(offset, offset[0], atol=1e-3)


def test_matches():
    """Openings are distinct and played with both colours, and the search of a match has no noise."""
    game = make_game("hex:3")
    openings = distinct_openings(game, 40, seed=0)
    assert len({board.tobytes() for board in np.sign(np.asarray(openings.states.cells))}) == 40
    search = make_search(game, make_table_evaluator(game), algorithm="gumbel", num_simulations=4, explore=False)
    player = search_player("deterministic", search, None)
    result = play_match(game, player, player, openings, KEY)
    # Against itself, a player repeats the game with colours swapped.
    assert (result.outcomes[0] == -result.outcomes[1]).all()
    assert (result.plies[0] == result.plies[1]).all()
    assert set(result.outcomes[0].tolist()) == {1, -1}
    other = play_match(game, player, player, openings, jax.random.key(1))
    assert (result.outcomes == other.outcomes).all()
    assert (result.plies == other.plies).all()


class TwoLayers(nn.Module):
    value_support = None

    @nn.compact
    def __call__(self, nodes, edges=None):
        flat = nodes.reshape(len(nodes), -1)
        return nn.Dense(2)(flat), jnp.tanh(nn.Dense(1)(flat)[..., 0])


def make_toy_run(num_iterations, num_groups=2):
    config = Config(boards=("toy",), num_iterations=num_iterations)
    config.search.num_simulations = 1
    config.selfplay.num_games, config.selfplay.num_groups, config.selfplay.plies_per_iteration = 400, num_groups, 5
    config.replay.capacity, config.replay.min_size = 20_000, 3_000
    config.learner.batch_size, config.learner.replay_ratio = 500, 2.0
    game, network, optimizer = MarkedGame(), TwoLayers(), optax.sgd(0.0)
    plan = make_plan(config, game, num_iterations)
    setup = Setup(config, game, plan, network, uniform_evaluator, lambda step: 0.0 * step, optimizer)
    params = network.init(KEY, jnp.zeros((1, 1, 2)))
    groups = jnp.arange(num_groups, dtype=jnp.int32)  # the iteration donates all of this, including keys
    example = Sample(game.init(KEY), jnp.zeros(2), jnp.zeros(()), jnp.zeros(()))
    games = jax.vmap(
        lambda group: start_games(
            game,
            jax.random.fold_in(KEY, group),
            num_games=plan.group_games,
            num_waiting=plan.num_waiting,
            opening_plies=0,
        )
    )(groups)
    board = BoardState(
        games=games,
        replay=jax.vmap(lambda _: make_replay(example, plan.group_capacity))(groups),
        groups=groups,
        iteration=jnp.zeros((), jnp.int32),
    )
    run = RunState(
        train=TrainState(params, optimizer.init(params), jnp.zeros((), jnp.int32), make_health(scale_loss=False)),
        boards=(board,),
        key=jax.random.key_data(jax.random.key(1)),
        iteration=jnp.zeros((), jnp.int32),
        evaluated=jnp.zeros((), jnp.int32),
        rollbacks=jnp.zeros((), jnp.int32),
        previous_params=jax.tree.map(jnp.copy, params),
    )
    return setup, run


@pytest.fixture(scope="module")
def toy_run():
    """Runs eight iterations of the real loop; returns the replay and the number of updates after each."""
    setup, run = make_toy_run(num_iterations=8)
    mesh = sharding.make_mesh(2)
    run = jax.device_put(run, state_shardings(mesh, jax.eval_shape(lambda: run)))
    iterate, after = make_iteration(setup, mesh), []
    for _ in range(8):
        run, metrics, _ = run_iteration(iterate, run)
        after.append(jax.tree.map(np.asarray, (run.boards[0].replay, run.train.step, metrics)))
    return setup.plan, after


def test_updates_follow_the_replay_minimum_and_ratio(toy_run):
    plan, after = toy_run
    sizes = [int(replay.size.sum()) for replay, _, _ in after]
    steps = [int(step) for _, step, _ in after]
    assert plan.num_waiting == 20
    assert sizes == [0, 0, 0, 0, 2000, 4000, 6000, 8000]
    # The replay holds 3,000 positions after the sixth iteration; each then uses 2 x 2,000 examples in batches of 500.
    assert steps == [0, 0, 0, 0, 0, 8, 16, 24]
    assert [bool(np.isnan(metrics["train/policy_loss"])) for _, _, metrics in after] == [True] * 5 + [False] * 3


def test_replay_gets_every_ply_once_and_in_order(toy_run):
    _, after = toy_run
    replay = after[-1][0]
    for group in range(2):
        size = int(replay.size[group])
        # Blocks are ordered by ply, then by game.
        serial, ply, length = (
            getattr(replay.samples.state, name)[group, :size].reshape(-1, 200) for name in ("serial", "ply", "length")
        )
        assert (ply[0] == 0).all()
        last = ply == length - 1
        assert (ply[1:] == np.where(last[:-1], 0, ply[:-1] + 1)).all()
        assert ((serial[1:] == serial[:-1]) == ~last[:-1]).all()
        assert len(set(zip(serial.ravel().tolist(), ply.ravel().tolist()))) == size


def test_replay_does_not_favour_short_games(toy_run):
    """At the first update, plies of long games are as frequent in the replay as in all of play."""
    _, after = toy_run
    replay, step, _ = after[5]
    assert step > 0
    num_plies = int(replay.size.sum()) // 400
    share = np.mean([(replay.samples.state.length[group, : replay.size[group]] == 20).mean() for group in range(2)])
    starts = []  # chance that a game starts at each ply, if 2 and 20 plies are equally likely
    for ply in range(num_plies):
        earlier = [starts[ply - length] if ply >= length else 0.0 for length in (2, 20)]
        starts.append(1.0 if ply == 0 else sum(earlier) / 2)
    is_long = [sum(starts[max(ply - 19, 0) : ply + 1]) / 2 for ply in range(num_plies)]
    assert abs(share - np.mean(is_long)) < 4 * 0.5 / np.sqrt(400)
    assert 0.6 < np.mean(is_long) < 0.9


def test_replay_holds_true_outcomes(toy_run):
    """With `value_lambda` 1, the target is the sum of the remaining rewards, even with consecutive moves."""
    _, after = toy_run
    samples, size = after[-1][0].samples, int(after[-1][0].size[0])
    state, target = jax.tree.map(lambda x: x[0, :size].reshape(-1, 200), (samples.state, samples.value_target))
    won = np.where(state.serial % 2 == 0, 1.0, -1.0)
    last_mover = (state.length - 1) // 2 % 2
    result = np.where(state.current_player == last_mover, won, -won)
    # In addition, each later ply pays 0 or 0.25 to its mover.
    paid = np.round((target - result) * 4, 4)
    remaining = state.length - state.ply
    assert (paid == np.round(paid)).all()
    assert (abs(paid) <= remaining).all()
    change = target[:-1] - np.where(state.current_player[:-1] == state.current_player[1:], 1, -1) * target[1:]
    within = state.serial[:-1] == state.serial[1:]
    assert set(np.round(change[within], 4).tolist()) == {0.0, 0.25}


def test_symmetry():
    """Nodes, mask, policy and value of an example describe one position under every symmetry."""
    game = make_game("tic_tac_toe")
    solved = reachable_positions(game)
    states, _ = all_positions(game)
    best = np.asarray(solved.action_values == solved.values[:, None], np.float32)
    features = jax.vmap(game.observe)(states)
    stones = (features[..., 0] - features[..., 1]).astype(jnp.int8)
    samples = Sample(
        states, jnp.asarray(best), jnp.ones(len(best)), jnp.asarray(solved.values, jnp.float32), {"ownership": stones}
    )
    setup, run = make_toy_run(num_iterations=8, num_groups=1)
    ring = add(make_replay(jax.tree.map(lambda x: x[0], samples), len(best)), samples, jnp.bool_(True))
    setup = Setup(setup.config, game, setup.plan, *[None] * 4)  # no network
    board = run.boards[0].replace(replay=jax.tree.map(lambda x: x[None], ring))
    batch = jax.tree.map(np.asarray, jax.jit(lambda key: draw_batch(setup, board, key[None]))(KEY))
    # The number of stones determines the player to move, so the features determine the position.
    own, theirs = batch.nodes[..., 0] > 0, batch.nodes[..., 1] > 0
    mover = (own | theirs).sum(axis=1) % 2
    boards = np.where(own, 1 + mover[:, None], np.where(theirs, 2 - mover[:, None], 0)).astype(np.int8)
    drawn = jax.tree.map(lambda x: jnp.zeros((len(boards), *x.shape[1:]), x.dtype), states).replace(board=boards)
    rows = np.full(3**9, -1)
    rows[np.asarray(position_code(game, states))] = np.arange(len(best))
    rows = rows[np.asarray(position_code(game, drawn))]
    assert (rows >= 0).all()
    assert (batch.legal_action_mask == (boards == 0)).all()
    assert (batch.auxiliary["ownership"] == own.astype(int) - theirs).all()
    assert (batch.policy_target == best[rows]).all()
    assert (batch.value_target == solved.values[rows]).all()


def test_outputs_do_not_depend_on_the_number_of_equal_nodes():
    """Attention and pooling use normalized weights, so the number of equal nodes does not matter."""
    results = []
    for board in ("hex:3", "hex:9"):
        topology = make_game(board).topology
        num_nodes = topology.num_nodes
        query, key, value = (
            jnp.asarray(np.broadcast_to(x, (1, num_nodes, 2, 4)))
            for x in np.random.default_rng(1).normal(size=(3, 1, 1, 2, 4)).astype(np.float32)
        )
        bias = jnp.zeros((len(topology.vocabulary.relations), 2))
        attended = np.asarray(dense_attention(query, key, value, bias, topology))
        np.testing.assert_allclose(attended, value, rtol=1e-5)
        head = ValueHead(num_pools=2)
        nodes = jnp.broadcast_to(jnp.linspace(-1, 1, 8)[None, None], (1, num_nodes, 8))
        results.append(np.asarray(head.apply(head.init(KEY, nodes), nodes)))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)


def test_large_boards_share_the_relations_of_small_boards():
    small, large = (make_game(board).topology for board in ("mnk:9x9x6", "mnk:19x19x9"))
    assert small.vocabulary is large.vocabulary
    assert set(large.relations.tolist()) == set(small.relations.tolist())
    assert "e5+" in {small.vocabulary.relations[number] for number in small.relations}
