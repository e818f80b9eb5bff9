import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.evaluation import arena, match_parts
from alphagat.evaluation.arena import play_match
from alphagat.evaluation.match_parts import Series
from alphagat.evaluation.match_result import MatchResult
from alphagat.evaluation.openings import Openings, distinct_openings
from alphagat.evaluation.players import Player, make_opponent
from alphagat.evaluation.solvers import solve
from alphagat.evaluation.statistics import paired_interval
from alphagat.games import make_game
from alphagat.games.batches import take
from alphagat.games.states import first_state
from alphagat.runtime import preemption, sharding
from tests.evaluation.toy import PileGame, piles, take_one_or_three

KEY = jax.random.key(0)


def _first_legal(params, key, states):
    """Takes the first legal action in the order of `params` `[A]`."""
    legal = states.legal_action_mask[:, params]
    return params[jnp.argmax(legal, axis=1)]


def _from(states):
    """Returns positions as openings of no moves."""
    return Openings(states, np.zeros((len(states.terminated), 0), np.int32))


def _first(order):
    return Player("first", _first_legal, jnp.array(order, jnp.int32))


@pytest.mark.parametrize("num_devices", [1, 8])
def test_perfect_players_score_the_exact_value_of_each_opening(num_devices):
    game = make_game("hex:3")
    openings = distinct_openings(game, 75, seed=1)  # not a multiple of 8
    solver = make_opponent(game, "solver")
    mesh = sharding.make_mesh(8) if num_devices == 8 else None
    result = play_match(game, solver, solver, openings, KEY, mesh)
    values = [solve("hex:3").action_values(take(openings.states, i)).max() for i in range(75)]
    to_player_0 = np.where(np.asarray(openings.states.current_player) == 0, values, -np.array(values))
    assert len(set(to_player_0.tolist())) == 2
    assert result.outcomes.tolist() == [to_player_0.tolist(), (-to_player_0).tolist()]
    assert result.score == 0.5
    assert result.num_games == 150


def test_results_are_from_player_a_view():
    game = make_game("tic_tac_toe")
    openings = distinct_openings(game, 60, seed=0)
    solver, random = make_opponent(game, "solver"), make_opponent(game, "random")
    strong, weak = play_match(game, solver, random, openings, KEY), play_match(game, random, solver, openings, KEY)
    assert strong.wins > 60
    assert strong.score > 0.7
    assert weak.losses > 60
    assert weak.score < 0.3
    assert strong.wins + strong.draws + strong.losses == strong.num_games == 120


def _play_slowly(size, orders):
    """Plays one game of piles in Python; returns player 0's result and the plies."""
    pile, player, plies = size, 0, 0
    while True:
        action = next(action for action in orders[player] if pile > action)
        pile, plies = pile - (1, 2, 3)[action], plies + 1
        if pile == 0:
            return 1 if player == 0 else -1, plies
        player = player if action == 1 else 1 - player


@pytest.mark.parametrize("num_devices", [1, 8])
def test_extra_moves_give_the_same_games_as_sequential_play(num_devices):
    # One player moves again whenever it can, so that most games wait for it.
    game, sizes = PileGame(16), list(range(1, 17))
    order_a, order_b = (1, 0, 2), (2, 0, 1)
    mesh = sharding.make_mesh(8) if num_devices == 8 else None
    result = play_match(game, _first(order_a), _first(order_b), _from(piles(sizes)), KEY, mesh)
    first = [_play_slowly(size, (order_a, order_b)) for size in sizes]
    second = [_play_slowly(size, (order_b, order_a)) for size in sizes]
    assert result.outcomes.tolist() == [[won for won, _ in first], [-won for won, _ in second]]
    assert result.plies.tolist() == [[plies for _, plies in first], [plies for _, plies in second]]
    for colour in range(2):
        for row, size in enumerate(sizes):
            moves = result.actions[colour, row]
            assert (moves[: result.plies[colour, row]] + 1).sum() == size
            assert (moves[result.plies[colour, row] :] == -1).all()


def test_truncated_games_pay_truncation_rewards():
    game = PileGame(30, max_plies=3)
    result = play_match(game, _first((0, 1, 2)), _first((0, 1, 2)), _from(piles([3, 4, 30])), KEY)
    # The cut costs player 0; a game that ends with the last ply allowed is not cut.
    assert result.outcomes.tolist() == [[1, -1, -1], [-1, 1, 1]]
    assert result.plies.tolist() == [[3, 3, 3], [3, 3, 3]]


def test_terminal_openings_are_draws_of_zero_plies():
    game = PileGame(4)
    openings = _from(piles([0, 1]).replace(terminated=jnp.array([True, False])))
    result = play_match(game, _first((0, 1, 2)), _first((0, 1, 2)), openings, KEY)
    assert result.outcomes.tolist() == [[0, 1], [0, -1]]
    assert result.plies.tolist() == [[0, 1], [0, 1]]


def test_new_parameters_do_not_recompile():
    act = chex.assert_max_traces(_first_legal, n=1)

    game, opponent = PileGame(7), _first((0, 1, 2))
    results = []
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        player = Player("traced", act, jnp.array(order, jnp.int32))
        results.append(play_match(game, player, opponent, _from(piles(range(1, 8))), KEY))
    assert (results[0].plies != results[1].plies).any()


def test_same_key_gives_same_match():
    game = make_game("tic_tac_toe")
    openings, random = distinct_openings(game, 20, seed=0), make_opponent(game, "random")
    first, again = (play_match(game, random, random, openings, KEY) for _ in range(2))
    other = play_match(game, random, random, openings, jax.random.key(1))
    assert (first.outcomes == again.outcomes).all()
    assert (first.plies == again.plies).all()
    assert (first.plies != other.plies).any()


def test_players_draw_anew_in_every_round():
    player = Player("draws", take_one_or_three)
    result = play_match(PileGame(40), player, _first((0, 1, 2)), _from(piles([40])), KEY)
    assert set(result.actions[0, 0, :16:2].tolist()) == {0, 2}


def test_players_and_rules_draw_with_different_keys(monkeypatch):
    keys = []
    monkeypatch.setattr(arena, "step", lambda game, games, actions, moves, key: keys.append(key))

    def act(params, key, states):
        keys.append(key)
        return jnp.zeros(len(states.terminated), jnp.int32)

    game = PileGame(4)
    arena._play_round(game, act, act, None, None, KEY, arena.set_up(game, piles([4, 4])))
    assert len({np.asarray(jax.random.key_data(key)).tobytes() for key in (KEY, *keys)}) == 4


def test_players_draw_anew_in_every_part():
    player = Player("draws", take_one_or_three)
    series = Series(PileGame(40), player, player, _from(piles([40, 40])), KEY, None, pytest.fail)
    first, second = (result for _, result in series.play(part_size=1))
    assert (first.actions != second.actions).any()


def test_a_series_is_played_on_its_devices(monkeypatch):
    player, mesh, played = _first((0, 1, 2)), sharding.make_mesh(8), []
    monkeypatch.setattr(match_parts, "play_match", lambda *arguments: played.append(arguments[5]))
    assert list(Series(PileGame(4), player, player, _from(piles([4])), KEY, mesh, pytest.fail).play())
    assert played == [mesh]


@pytest.mark.parametrize("num_devices", [1, 8])
def test_progress_counts_the_games_that_are_over(num_devices):
    game = make_game("tic_tac_toe")
    openings, mesh = distinct_openings(game, 9, seed=0), sharding.make_mesh(num_devices)  # padded to 16 on 8 devices
    random, over = make_opponent(game, "random"), []
    watched = play_match(game, random, random, openings, KEY, mesh, over.append)
    assert over == sorted(over)
    assert 0 <= over[0] < over[-1] == 18
    assert len(over) == watched.plies.max()
    silent = play_match(game, random, random, openings, KEY, mesh)
    np.testing.assert_array_equal(watched.outcomes, silent.outcomes)


def test_a_request_to_stop_ends_a_match_after_the_round(monkeypatch):
    game, over = make_game("tic_tac_toe"), []
    random = make_opponent(game, "random")
    monkeypatch.setattr(preemption, "is_requested", lambda: len(over) == 2)
    with pytest.raises(preemption.Preempted):
        play_match(game, random, random, distinct_openings(game, 9, seed=0), KEY, progress=over.append)
    assert len(over) == 2


def test_devices_play_different_games():
    game = make_game("hex:2")
    opening = jax.tree.map(lambda x: np.repeat(np.asarray(x)[None], 8, axis=0), first_state(game))
    random, mcts = make_opponent(game, "random"), make_opponent(game, "mcts:8")
    result = play_match(game, random, mcts, _from(opening), KEY, sharding.make_mesh(8))
    assert len(set(zip(*result.plies.tolist(), *result.outcomes.tolist(), strict=True))) > 2


def test_summary():
    outcomes = np.array([[1, 1, 1, 0], [-1, 0, 1, -1]], np.float32)
    plies = np.array([[4, 4, 4, 9], [5, 9, 5, 5]])
    result = MatchResult(outcomes, plies, np.zeros((2, 4, 9), np.int32), np.full((2, 4), ""))
    assert (result.wins, result.draws, result.losses) == (4, 2, 2)
    assert result.score == 5 / 8
    assert result.pair_scores.tolist() == [1, 1.5, 2, 0.5]
    assert result.score_by_colour == (7 / 8, 3 / 8)
    assert result.mean_plies == 45 / 8
    low, high = result.interval
    assert 0 < low < 5 / 8 < high < 1
    assert (low, high) == paired_interval(np.array([0.5, 0.75, 1.0, 0.25]))


def test_single_player_game_is_rejected(monkeypatch):
    monkeypatch.setattr(PileGame, "num_players", 1)
    with pytest.raises(UserError, match="two players"):
        play_match(PileGame(4), _first((0, 1, 2)), _first((0, 1, 2)), _from(piles([4])), KEY)


def first_square(params, key, states):
    """Takes the first square, whether it is free or not."""
    return jnp.zeros(len(states.terminated), jnp.int32)


def outside(params, key, states):
    return jnp.full(len(states.terminated), -1, jnp.int32)


@pytest.mark.parametrize("num_devices", [1, 2])
@pytest.mark.parametrize("act", [first_square, outside])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_player_that_makes_an_illegal_move_is_refused(act, is_first, num_devices):
    game = make_game("tic_tac_toe")
    players = Player("mine", act), make_opponent(game, "random")
    with pytest.raises(
        UserError, match=r"^player 'mine': it made \d+ illegal moves?; choose among .*legal_action_mask"
    ):
        play_match(
            game,
            *(players if is_first else players[::-1]),
            distinct_openings(game, 4, 0),
            jax.random.key(0),
            sharding.make_mesh(num_devices),
        )


def test_illegal_moves_in_games_that_do_not_wait_for_the_player_do_not_count():
    """Both halves of a round have games in which the player does not move."""
    game, openings = PileGame(9), Openings(piles([3, 9, 9, 9]), np.zeros((4, 0), np.int32))

    def take_one(params, key, states):
        return jnp.where(states.terminated, -1, jnp.zeros(len(states.terminated), jnp.int32))

    result = play_match(game, Player("ones", take_one), Player("ones", take_one), openings, jax.random.key(0))
    assert result.plies.tolist() == [[3, 9, 9, 9]] * 2


@pytest.mark.parametrize(
    "wrong", [lambda actions: actions.astype(jnp.float32), lambda actions: actions[:, None], lambda actions: actions[0]]
)
def test_actions_of_the_wrong_type_or_shape_are_refused(wrong):
    game = make_game("tic_tac_toe")
    player = Player("mine", lambda params, key, states: wrong(states.legal_action_mask.argmax(axis=1)))
    with pytest.raises(UserError, match=r"^actions of a player: they must be int32 \[4\], one for each state, but are"):
        play_match(game, player, make_opponent(game, "random"), distinct_openings(game, 4, 0), jax.random.key(0))
