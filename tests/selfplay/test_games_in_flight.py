import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.games import make_game
from alphagat.runtime import sharding
from alphagat.search import SearchOutput, make_search
from alphagat.selfplay.games_in_flight import (
    draw_full_searches,
    make_opener,
    make_play,
    num_waiting_plies,
    start_games,
    weigh_by_surprise,
)
from tests.search.evaluators import make_table_evaluator
from tests.selfplay.toy import MarkedGame, random_search

KEY = jax.random.key(0)
TOY = MarkedGame()
NUM_PLIES, NUM_WAITING, NUM_GAMES = 7, 21, 40


@functools.cache
def play_toy(max_plies=20, num_calls=6):
    """Returns the games before the first call and after each call, and the history of each call."""
    games = start_games(TOY, KEY, num_games=NUM_GAMES, num_waiting=NUM_WAITING, opening_plies=0)
    play = jax.jit(make_play(TOY, random_search, num_plies=NUM_PLIES, max_plies=max_plies, opening_plies=0))
    kept, histories = [games], []
    for call in range(num_calls):
        games, history = play(None, jax.random.fold_in(KEY, call), games)
        kept.append(games)
        histories.append(history)
    return jax.tree.map(np.asarray, (kept, histories))


def all_played(histories):
    parts = [jax.tree.map(lambda x: x[NUM_WAITING:], history) for history in histories]
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


@pytest.mark.parametrize(
    ("horizon", "plies", "waiting"),
    [(9, 4, 8), (9, 3, 9), (10, 3, 9), (1, 5, 5), (2, 5, 5), (6, 5, 5), (7, 5, 10)],
)
def test_waiting_plies_cover_the_horizon(horizon, plies, waiting):
    # `waiting` plies follow the youngest ply that leaves.
    assert num_waiting_plies(horizon, plies) == waiting
    assert waiting + 1 >= horizon > (waiting + 1 - plies if waiting > plies else 0)


@pytest.mark.parametrize("board", ["tic_tac_toe", "hex:3"])
def test_opening_lengths_are_uniform_and_no_opening_is_terminal(board):
    game = make_game(board)
    opened = jax.jit(jax.vmap(make_opener(game, 4)))(jax.random.split(KEY, 5000))
    stones = (np.asarray(opened.state.legal_action_mask) == 0).sum(axis=1)
    assert (stones == np.asarray(opened.plies)).all()
    assert not opened.state.terminated.any()
    counts = np.bincount(stones, minlength=5)
    assert len(counts) == 5
    assert abs(counts - 1000).max() < 4 * np.sqrt(5000 * 0.2 * 0.8)  # no game ends within 4 plies
    first = np.asarray(opened.state.legal_action_mask)[stones == 1]
    assert abs((~first).mean(axis=0) - 1 / 9).max() < 4 * np.sqrt(1 / 9 / len(first))


def test_long_openings_stop_before_the_game_ends():
    game = make_game("hex:3")
    opened = jax.jit(jax.vmap(make_opener(game, 9)))(jax.random.split(KEY, 500))
    assert not opened.state.terminated.any()
    assert opened.state.legal_action_mask.any(axis=1).all()
    assert ((np.asarray(opened.state.cells) != 0).sum(axis=1) == opened.plies).all()
    assert {0, 4, 6} < set(opened.plies.tolist())


def test_zero_opening_plies_give_the_initial_position():
    opened = make_opener(make_game("hex:3"), 0)(KEY)
    assert opened.plies == 0
    assert opened.state.legal_action_mask.all()


def test_shapes():
    kept, histories = play_toy()
    chex.assert_tree_shape_prefix(histories[0], (NUM_WAITING + NUM_PLIES, NUM_GAMES))
    chex.assert_tree_shape_prefix(kept[1].waiting, (NUM_WAITING, NUM_GAMES))
    chex.assert_tree_shape_prefix(kept[1].state, (NUM_GAMES,))
    assert histories[0].policy_target.shape[2:] == (2,)
    chex.assert_trees_all_equal_dtypes(kept[0], kept[-1])


def test_games_continue_from_call_to_call():
    kept, histories = play_toy()
    for call, history in enumerate(histories):
        # The first new ply starts where the last call stopped.
        first = jax.tree.map(lambda x: x[NUM_WAITING], history.state)
        chex.assert_trees_all_equal(first, kept[call].state)
        waited = jax.tree.map(lambda x: x[:NUM_WAITING], history)
        chex.assert_trees_all_equal(waited, kept[call].waiting)


def test_waiting_plies_leave_unchanged():
    _, histories = play_toy()
    blank_calls = NUM_WAITING // NUM_PLIES
    leaves = [jax.tree.map(lambda x: x[:NUM_PLIES], history) for history in histories[blank_calls:]]
    left = jax.tree.map(lambda *x: np.concatenate(x), *leaves)
    played = jax.tree.map(lambda x: x[: len(left.ended)], all_played(histories))
    assert len(left.ended) == 21
    chex.assert_trees_all_equal(left, played)


@pytest.mark.parametrize("max_plies", [20, 7])
def test_no_ply_is_lost_or_repeated(max_plies):
    played = all_played(play_toy(max_plies)[1])
    state = played.state
    identities = set(zip(state.serial.ravel().tolist(), state.ply.ravel().tolist()))
    assert len(identities) == state.ply.size
    assert (state.ply[0] == 0).all()
    assert not state.terminated.any()
    ended, goes_on = played.ended[:-1], ~played.ended[:-1]
    assert (state.serial[1:] == state.serial[:-1])[goes_on].all()
    assert (state.ply[1:] == state.ply[:-1] + 1)[goes_on].all()
    assert (state.serial[1:] != state.serial[:-1])[ended].all()
    assert (state.ply[1:][ended] == 0).all()
    assert (played.length == state.ply + 1).all()
    assert (played.ended == (played.length == np.minimum(state.length, max_plies))).all()


def test_truncation_is_distinct_from_termination_and_pays_the_truncation_rewards():
    played = all_played(play_toy(7)[1])
    state = played.state
    long_games = state.length == 20
    assert (played.truncated == (long_games & (state.ply == 6))).all()
    assert played.truncated.sum() > 20
    assert (played.discount[played.ended] == 0).all()
    # Ply 6 is the first of player 1's second turn: truncation pays it -0.5 in addition to the 0.25 of its last move.
    assert (state.current_player[played.truncated] == 1).all()
    assert set(played.reward[played.truncated].tolist()) == {-0.5, -0.25}
    by_rules = played.ended & ~played.truncated
    won = np.where(state.serial % 2 == 0, 1.0, -1.0)
    assert set((played.reward - won)[by_rules].tolist()) == {0, 0.25}


def test_a_game_that_terminates_at_the_cap_is_not_truncated():
    played = all_played(play_toy(20)[1])
    assert (played.ended & (played.length == 20)).any()
    assert not played.truncated.any()


def test_discounts_change_sign_with_the_player():
    played = all_played(play_toy()[1])
    before, after = played.state.current_player[:-1], played.state.current_player[1:]
    expected = np.where(played.ended[:-1], 0, np.where(before == after, 1, -1))
    assert (played.discount[:-1] == expected).all()
    assert set(played.discount.ravel().tolist()) == {-1, 0, 1}


def test_one_and_eight_devices_play_the_same_games():
    game = make_game("tic_tac_toe")
    search = make_search(game, make_table_evaluator(game), algorithm="gumbel", num_simulations=6, explore=True)
    play = make_play(game, search, num_plies=12, max_plies=9, opening_plies=0)

    def iterate(groups):
        keys = jax.vmap(lambda group: jax.random.split(jax.random.fold_in(KEY, group)))(groups)
        games = jax.vmap(lambda key: start_games(game, key, num_games=4, num_waiting=0, opening_plies=0))(keys[:, 0])
        return jax.vmap(play, in_axes=(None, 0, 0))(None, keys[:, 1], games)

    def on(num_devices):
        mesh = sharding.make_mesh(num_devices)
        mapped = jax.shard_map(
            iterate, mesh=mesh, in_specs=sharding.SHARDED, out_specs=sharding.SHARDED, check_vma=False
        )
        return jax.tree.map(np.asarray, jax.jit(mapped)(jnp.arange(8)))

    (one, one_history), (eight, eight_history) = on(1), on(8)
    for name in ("state", "ended", "reward", "discount", "length"):
        chex.assert_trees_all_equal(getattr(one_history, name), getattr(eight_history, name))
    chex.assert_trees_all_equal(one.state, eight.state)
    np.testing.assert_allclose(one_history.policy_target, eight_history.policy_target, atol=1e-5)
    # Groups play different games.
    boards = one_history.state.board
    assert len({boards[group].tobytes() for group in range(8)}) == 8


def fixed_search(action_of, value):
    """Returns a search with a fixed action and value."""

    def search(params, key, states, plies):
        action = action_of(states.legal_action_mask).astype(jnp.int32)
        target = jax.nn.one_hot(action, states.legal_action_mask.shape[-1])
        return SearchOutput(action, target, jnp.full(len(action), value))

    return search


def test_fast_searches_have_no_policy_weight():
    game = make_game("tic_tac_toe")
    first = fixed_search(lambda legal: jnp.argmax(legal, axis=-1), 0.5)
    last = fixed_search(lambda legal: 8 - jnp.argmax(legal[:, ::-1], axis=-1), -0.5)
    games = start_games(game, KEY, num_games=5, num_waiting=0, opening_plies=0)
    is_full = np.array([True, False, False, True, False, True])
    options = {"num_plies": 6, "max_plies": 9, "opening_plies": 0}
    mixed = jax.jit(make_play(game, first, **options, fast_search=last))
    _, history = mixed(None, KEY, games, jnp.asarray(is_full))
    assert (np.asarray(history.search_value) == np.where(is_full, 0.5, -0.5)[:, None]).all()
    assert (np.asarray(history.is_full) == is_full[:, None]).all()
    assert (np.asarray(history.policy_weight) == is_full[:, None]).all()
    boards, players = np.asarray(history.state.board), np.asarray(history.state.current_player)
    for ply in range(3):  # no game is over before
        stones = boards[ply + 1] - boards[ply]
        cells = np.arange(9) if is_full[ply] else np.arange(9)[::-1]
        expected = [next(cell for cell in cells if board[cell] == 0) for board in boards[ply]]
        assert (np.argmax(stones, axis=1) == expected).all()
        assert (stones.sum(axis=1) == players[ply] + 1).all()
    _, plain = jax.jit(make_play(game, first, **options))(None, KEY, games)
    assert np.asarray(plain.is_full).all()
    assert (np.asarray(plain.policy_weight) == 1).all()


def test_full_searches_are_as_many_as_configured_and_anywhere():
    drawn = np.asarray([draw_full_searches(key, 8, 3) for key in jax.random.split(KEY, 400)])
    assert (drawn.sum(axis=1) == 3).all()
    assert (abs(drawn.mean(axis=0) - 3 / 8) < 4 * np.sqrt(15 / 64 / 400)).all()
    assert draw_full_searches(KEY, 100, 100).all()


def test_surprise_redistributes_the_policy_weight():
    game = make_game("tic_tac_toe")

    def search(params, key, states, plies):
        found = random_search(params, key, states, plies)
        return found._replace(surprise=states.board.astype(jnp.float32) @ jnp.arange(9) / 9 + 2)

    is_full = np.array([True, False, True, True])
    options = {"num_plies": 4, "max_plies": 9, "opening_plies": 0, "surprise_fraction": 0.25}
    games = start_games(game, KEY, num_games=5, num_waiting=0, opening_plies=0)
    _, history = jax.jit(make_play(game, search, fast_search=search, **options))(None, KEY, games, is_full)
    surprise = np.asarray(history.state.board) @ np.arange(9) / 9 + 2  # [T, N]
    expected = np.where(is_full[:, None], 0.75 + 0.25 * surprise / surprise[is_full].mean(), 0)
    np.testing.assert_allclose(history.policy_weight, expected, rtol=1e-5)
    assert np.asarray(history.policy_weight)[is_full].std() > 0.05


@pytest.mark.parametrize("surprise", [0.0, -1e-8])
def test_plies_without_surprise_keep_their_weights(surprise):
    weights = jnp.full((2, 3), 4.0)
    np.testing.assert_array_equal(weigh_by_surprise(weights, jnp.full((2, 3), surprise), 0.5), weights)


def test_a_surprise_that_rounding_makes_negative_counts_as_none():
    weights = weigh_by_surprise(jnp.ones(3), jnp.array([-1e-7, 3e-7, 0.0]), 1.0)
    np.testing.assert_allclose(weights, [0, 3, 0], rtol=1e-5)


def test_plies_without_weight_get_none():
    assert (weigh_by_surprise(jnp.zeros((2, 3)), jnp.ones((2, 3)), 0.5) == 0).all()
