import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.evaluation.solvers import solve
from alphagat.games import make_game
from alphagat.selfplay.auxiliary_targets import AUXILIARY_TARGETS
from alphagat.selfplay.games_in_flight import make_play, start_games
from alphagat.selfplay.ply import Ply
from alphagat.selfplay.targets import value_targets
from tests.selfplay.toy import random_search

NUM_PLIES, NUM_GAMES = 25, 30
KEY = jax.random.key(0)


def random_history(seed):
    """Draws rewards at any ply, ends in the middle and at the last ply, and players who move twice."""
    generator = np.random.default_rng(seed)
    shape = (NUM_PLIES, NUM_GAMES)
    discount = generator.choice([-1.0, 1.0, 0.0], shape, p=[0.5, 0.35, 0.15]).astype(np.float32)
    return Ply(
        state=None,
        action=None,
        policy_target=None,
        is_full=None,
        policy_weight=None,
        search_value=generator.uniform(-1, 1, shape).astype(np.float32),
        reward=generator.uniform(-1, 1, shape).astype(np.float32),
        discount=discount,
        ended=discount == 0,
        truncated=np.zeros(shape, bool),
        length=np.zeros(shape, np.int32),
    )


def n_step_return(rewards, discounts, values, ply, steps):
    """Sums `steps` rewards from `ply`, then adds the value after them unless it is past the last ply."""
    total, weight = 0.0, 1.0
    for k in range(ply, ply + steps):
        total += weight * rewards[k]
        weight *= discounts[k]
    return total + (weight * values[ply + steps] if ply + steps < len(values) else 0.0)


def slow_target(rewards, discounts, values, ply, lambda_):
    """Mixes all n-step returns (Sutton and Barto 2018, equation 12.3), one number at a time, in float64."""
    last = len(rewards) - 1
    steps = last + 1 - ply if discounts[last] == 0 else last - ply  # of the longest return
    if steps == 0:
        return values[ply]
    shorter = sum(
        (1 - lambda_) * lambda_ ** (n - 1) * n_step_return(rewards, discounts, values, ply, n) for n in range(1, steps)
    )
    return shorter + lambda_ ** (steps - 1) * n_step_return(rewards, discounts, values, ply, steps)


@pytest.mark.parametrize("value_lambda", [0.0, 0.5, 1.0])
def test_targets_mix_the_n_step_returns(value_lambda):
    history = random_history(0)
    assert 0 < history.ended[-1].sum() < NUM_GAMES
    targets = np.asarray(jax.jit(value_targets, static_argnums=1)(history, value_lambda))
    columns = [x.astype(np.float64) for x in (history.reward, history.discount, history.search_value)]
    for game in range(NUM_GAMES):
        rewards, discounts, values = (x[:, game] for x in columns)
        expected = [slow_target(rewards, discounts, values, ply, value_lambda) for ply in range(NUM_PLIES)]
        np.testing.assert_allclose(targets[:, game], expected, atol=1e-5)


def test_targets_are_the_outcome_if_the_game_ends_in_the_history():
    game = make_game("tic_tac_toe")
    # Whole games of nine plies end with the last ply of the history.
    num_games = 200
    games = start_games(game, jax.random.key(0), num_games=num_games, num_waiting=0, opening_plies=0)
    play = jax.jit(make_play(game, random_search, num_plies=9, max_plies=9, opening_plies=0))
    _, history = jax.tree.map(np.asarray, play(None, jax.random.key(1), games))
    targets = np.asarray(value_targets(jax.device_put(history), 1.0))
    has_won = solve("tic_tac_toe").has_won
    known = np.zeros(targets.shape, bool)
    for column in range(num_games):
        start = 0
        for end in np.flatnonzero(history.ended[:, column]):
            winner = winner_of(history, end, column, has_won)
            mover = history.state.current_player[start : end + 1, column]
            expected = np.zeros(len(mover)) if winner is None else np.where(mover == winner, 1, -1)
            assert (targets[start : end + 1, column] == expected).all()
            known[start : end + 1, column] = True
            start = end + 1
    assert (history.ended[-1] & (history.length[-1] == 9)).sum() > 20
    # The others bootstrap from the last search value, from either player's view.
    assert set(np.round(targets[~known], 5).tolist()) == {np.float32(0.3).round(5), np.float32(-0.3).round(5)}


def test_ownership_targets_are_the_final_board_from_the_view_of_the_player_to_move():
    game, target = make_game("othello:4"), AUXILIARY_TARGETS["ownership"]
    num_games = 50
    games = start_games(
        game, jax.random.key(0), num_games=num_games, num_waiting=0, opening_plies=0, auxiliary=(target,)
    )
    options = {"num_plies": 40, "max_plies": 11, "opening_plies": 0, "auxiliary": (target,)}
    _, history = jax.tree.map(np.asarray, jax.jit(make_play(game, random_search, **options))(None, KEY, games))
    targets = np.asarray(target.targets(jax.device_put(history)))
    step, count, is_odd = jax.jit(game.step), 0, False
    for column in range(num_games):
        start = 0
        for end in np.flatnonzero(history.ended[:, column]):
            last = jax.tree.map(lambda x, at=(end, column): x[at], history.state)
            after = step(last, history.action[end, column], KEY)
            discs = np.array([{".": 0, "x": 1, "o": -1}[cell] for cell in cells_of(game.render(after))])
            for ply in range(start, end + 1):
                sign = 1 if history.state.current_player[ply, column] == 0 else -1
                np.testing.assert_array_equal(targets[ply, column, :-1], sign * discs)
                is_odd |= sign < 0
            start, count = end + 1, count + 1
        assert (targets[start:, column] == 0).all()  # these games have not ended
    assert count > num_games
    assert is_odd
    assert 0 < history.truncated.sum() < count


def test_ownership_of_a_truncated_game_of_go_fills_territory():
    game, target, num_games = make_game("go:5"), AUXILIARY_TARGETS["ownership"], 20
    games = start_games(
        game, jax.random.key(0), num_games=num_games, num_waiting=0, opening_plies=0, auxiliary=(target,)
    )
    options = {"num_plies": 20, "max_plies": 19, "opening_plies": 0, "auxiliary": (target,)}
    _, history = jax.jit(make_play(game, random_search, **options))(None, KEY, games)
    targets = np.asarray(target.targets(history))
    after = jax.vmap(jax.vmap(game.step, (0, 0, None)), (0, 0, None))(history.state, history.action, KEY)
    filled = np.asarray(jax.vmap(jax.vmap(game.ownership, (0, None)), (0, None))(after, jnp.bool_(True)))
    plies, columns = np.nonzero(np.asarray(history.truncated))
    assert len(plies) > 10
    own = np.asarray(history.state.current_player)[plies, columns]
    expected = np.where(own == 0, 1, -1)[:, None] * filled[plies, columns]
    np.testing.assert_array_equal(targets[plies, columns], expected)


def cells_of(drawing):
    return [cell for line in drawing.splitlines()[1:5] for cell in line.split()[1:]]


def winner_of(history, end, column, has_won):
    """Returns the winner, derived from the stones before the last move; None for a draw."""
    board = history.state.board[end, column]
    mover = int(history.state.current_player[end, column])
    if history.length[end, column] < 9:
        return mover  # nothing else ends a game before the board is full
    stones = sum(1 << int(cell) for cell in np.flatnonzero((board == mover + 1) | (board == 0)))
    return mover if has_won(mover, stones) else None
