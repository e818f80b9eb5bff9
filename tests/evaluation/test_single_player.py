"""Games of one player: the sum of what each game pays, over whole games, whatever the number of devices."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.contests import match_report
from alphagat.errors import UserError
from alphagat.evaluation import single_player
from alphagat.evaluation.players import Player, mcts_player, random_player
from alphagat.evaluation.single_player import Scores, play_alone
from alphagat.games import make_game
from alphagat.runtime import preemption, sharding

GAME = make_game("2048:2")
KEY = jax.random.key(0)


def first_legal(params, key, states):
    """Plays the first legal direction: deterministic, so that only chance makes games differ."""
    return states.legal_action_mask.argmax(-1).astype(jnp.int32)


@functools.cache
def scores(num_games: int, num_devices: int):
    mesh = sharding.make_mesh(num_devices) if num_devices else None
    return play_alone(GAME, Player("first", first_legal), num_games, KEY, mesh)


def test_score_is_sum_of_rewards():
    """Plays the same games by hand, one after the other."""
    found = scores(12, 0)
    step = jax.jit(GAME.step)
    for number, key in enumerate(jax.random.split(KEY, 12)):
        init_key, ply_key = jax.random.split(key)
        state, score, ply = GAME.init(init_key), 0.0, 0
        while not state.terminated:
            step_key = jax.random.split(jax.random.fold_in(ply_key, ply))[1]
            action = jnp.int32(np.argmax(np.asarray(state.legal_action_mask)))
            state = step(state, action, step_key)
            score, ply = score + float(state.rewards[0]), ply + 1
        assert (found.scores[number], found.plies[number]) == (score, ply)
        assert found.achievements[number] == 2 ** int(np.max(state.board))
    assert len(set(found.scores.tolist())) > 3


def test_a_request_to_stop_ends_the_games_after_a_ply(monkeypatch):
    asked = []
    monkeypatch.setattr(preemption, "is_requested", lambda: asked.append(None) or len(asked) == 3)
    with pytest.raises(preemption.Preempted):
        play_alone(GAME, Player("first", first_legal), 4, KEY)
    assert len(asked) == 3


class KeyState(NamedTuple):
    """The state of a game of three plies that compares its keys."""

    terminated: jax.Array
    rewards: jax.Array
    ply: jax.Array
    init_key: jax.Array  # key data


class KeyGame:
    """Pays 1 if the key of a step is the key of the first state or of the player, or one that these split into."""

    def init(self, key):
        return KeyState(jnp.bool_(False), jnp.zeros(1), jnp.int32(0), jax.random.key_data(key))

    def step(self, state, action, key):
        used = [jax.random.wrap_key_data(data) for data in (state.init_key, action)]
        used = jnp.concatenate([jax.random.key_data(jnp.stack([each, *jax.random.split(each)])) for each in used])
        clashes = (used == jax.random.key_data(key)[None]).all(axis=1).any()
        return KeyState(state.ply >= 2, clashes.astype(float)[None], state.ply + 1, state.init_key)

    def achievement(self, state):
        return state.ply


def test_no_key_is_used_twice(monkeypatch):
    def act(params, key, states):
        return jnp.broadcast_to(jax.random.key_data(key), (len(states.ply), 2))

    def choose(act, *arguments):
        actions = act(*arguments)
        return actions, jnp.ones(len(actions), bool)

    monkeypatch.setattr(single_player, "choose", choose)  # these actions are keys
    found = play_alone(KeyGame(), Player("keys", act), 4, KEY)
    assert (found.scores == 0).all()
    assert (found.plies == 3).all()


def test_result_is_independent_of_device_count():
    np.testing.assert_array_equal(scores(16, 0).scores, scores(16, 8).scores)


def test_accepts_parameters_on_one_device():
    """As those of a checkpoint do, which is restored for one."""

    def act(params, key, states):
        return jnp.where(states.legal_action_mask, params[None], -1).argmax(-1).astype(jnp.int32)

    params = jax.device_put(jnp.arange(4.0), jax.devices()[0])
    player = Player("last", act, params)
    found = [play_alone(GAME, player, 16, KEY, mesh).scores for mesh in (None, sharding.make_mesh(8))]
    np.testing.assert_array_equal(*found)


def test_counts_all_games_when_not_divisible_by_devices():
    found = scores(13, 8)
    assert found.scores.shape == found.plies.shape == (13,)
    assert (found.plies > 0).all()


def test_games_end_although_those_that_fill_up_the_devices_end_first():
    np.testing.assert_array_equal(scores(13, 8).scores, scores(16, 8).scores[:13])


def test_interval_contains_mean():
    found = scores(16, 0)
    low, high = found.interval
    assert low < found.mean < high
    half = 2.131450 * found.scores.std(ddof=1) / 4  # Student's quantile of 15 degrees of freedom
    assert (low, high) == pytest.approx((found.mean - half, found.mean + half), rel=1e-5)


def test_ratio_to_a_mean_of_zero_is_undefined():
    ones, zeros = (Scores(np.full(2, score, np.float32), np.ones(2, np.int32)) for score in (1, 0))
    assert zeros.ratio_to(ones) == 0
    assert math.isnan(ones.ratio_to(zeros))
    assert "ratio undefined, 2 games each" in match_report.solo_line(GAME, ("a", "b"), (ones, zeros))
    match_report.solo_table(GAME, ("a", "b"), (ones, zeros))


def test_shares_count_games_that_achieved_at_least_a_number():
    found = Scores(np.zeros(4), np.ones(4, np.int32), np.array([8, 16, 8, 4]))
    assert found.shares() == {16: 0.25, 8: 0.75, 4: 1.0}
    assert Scores(np.zeros(4), np.ones(4, np.int32)).shares() == {}


def test_random_2048_scores_match_known_mean():
    """Two implementations average 1,094 to 1,097 points over 3,000 games."""
    game = make_game("2048")
    found = play_alone(game, random_player(game), 400, KEY, sharding.make_mesh(8))
    low, high = found.interval
    assert low - 30 < 1095 < high + 30


def test_plain_mcts_rejects_chance_moves():
    with pytest.raises(UserError, match=r"mcts:10: board 2048:2 has chance moves"):
        mcts_player(GAME, 10)


def test_a_player_that_makes_an_illegal_move_is_refused():
    player = Player("mine", lambda params, key, states: jnp.zeros(len(states.terminated), jnp.int32))
    with pytest.raises(UserError, match=r"^player 'mine': it made \d+ illegal moves?; choose among"):
        play_alone(make_game("tsp:5"), player, 4, jax.random.key(0))
