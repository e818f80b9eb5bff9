"""Matches with players on the host: the same games as those of the devices, and games lost by what an engine does."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.evaluation.arena import play_match
from alphagat.evaluation.engines.base import Engine, EngineError
from alphagat.evaluation.hosted_arena import play_hosted_match
from alphagat.evaluation.match_result import FIELDS, join
from alphagat.evaluation.openings import Openings, distinct_openings
from alphagat.evaluation.players import Player, make_opponent
from alphagat.games import make_game
from alphagat.games.states import first_state
from tests.evaluation.toy import PileGame, piles, take_one_or_three

KEY = jax.random.key(0)


class FirstLegal(Engine):
    """Plays the first legal action, and keeps the positions that it saw."""

    name = "first"

    def __init__(self):
        self.seen = []

    def choose(self, position):
        self.seen.append(position)
        return int(np.flatnonzero(position.state.legal_action_mask)[0])


def _first_legal(params, key, states):
    return jnp.argmax(states.legal_action_mask, axis=1).astype(jnp.int32)


FIRST = Player("first", _first_legal)
DRAWS = Player("draws", take_one_or_three)


def assert_equal(one, other):
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


@pytest.mark.parametrize("name", ["hex:3", "connect_four", "breakthrough:5"])
def test_hosted_and_device_matches_play_same_games(name):
    game = make_game(name)
    openings = distinct_openings(game, 7, seed=0)
    on_devices = play_match(game, FIRST, FIRST, openings, KEY)
    for players in ((FirstLegal(), FirstLegal()), (FirstLegal(), FIRST), (FIRST, FirstLegal()), (FIRST, FIRST)):
        assert_equal(play_hosted_match(game, *players, openings, KEY), on_devices)


def test_extra_moves_keep_games_correct():
    """Games in which a player may move again: often all games wait for one player."""
    game, sizes = PileGame(9), list(range(1, 10))
    game.action_names = ("one", "two", "three")
    openings = Openings(piles(sizes), np.zeros((9, 0), np.int32))
    last = Player("last", lambda params, key, states: 2 - jnp.argmax(states.legal_action_mask[:, ::-1], axis=1))
    assert_equal(
        play_hosted_match(game, FirstLegal(), last, openings, KEY), play_match(game, FIRST, last, openings, KEY)
    )


def test_two_players_draw_independently():
    """Each begins one of the two games from the same opening."""
    game = PileGame(40)
    game.action_names = ("one", "two", "three")
    openings = Openings(piles([40]), np.zeros((1, 0), np.int32))
    result = play_hosted_match(game, DRAWS, DRAWS, openings, KEY)
    assert (result.actions[0] != result.actions[1]).any()


def test_players_draw_anew_in_every_round():
    game = PileGame(40)
    game.action_names = ("one", "two", "three")
    openings = Openings(piles([40]), np.zeros((1, 0), np.int32))
    result = play_hosted_match(game, DRAWS, FirstLegal(), openings, KEY)
    drawn = result.actions[0, 0, :16:2].tolist()
    assert set(drawn[:4]) == set(drawn[4:]) == {0, 2}


def test_solver_wins_every_won_position():
    game = make_game("tic_tac_toe")
    openings = distinct_openings(game, 20, seed=0)
    result = play_hosted_match(game, make_opponent(game, "solver"), FirstLegal(), openings, KEY)
    assert result.losses <= 4  # openings that are lost already
    assert result.wins > 20


def test_engine_receives_complete_game_history():
    game, engine = make_game("breakthrough:5"), FirstLegal()
    openings = distinct_openings(game, 3, seed=0)
    play_hosted_match(game, engine, FIRST, openings, KEY)
    for position in engine.seen:
        state = first_state(game)
        for name, player in zip(position.moves, position.players, strict=True):
            assert state.current_player == player
            names = {game.action_name(state, a): a for a in np.flatnonzero(state.legal_action_mask)}
            state = game.step(state, np.int32(names[name]), KEY)
        assert not state.terminated
        chex.assert_trees_all_equal(state, position.state)
        assert position.player == state.current_player
    assert len(engine.seen) > 10


class FailsAfter(FirstLegal):
    """Fails in each game at the first move of its own after so many plies."""

    name = "fails"

    def __init__(self, plies, end):
        super().__init__()
        self.plies, self.end = plies, end

    def choose(self, position):
        if len(position.moves) >= self.plies:
            raise EngineError(self.end, "it said: nothing")
        return super().choose(position)


@pytest.mark.parametrize("side", [0, 1])
def test_engine_failure_forfeits_only_its_game(side):
    game, lines = make_game("connect_four"), []
    openings = distinct_openings(game, 4, seed=0)  # of one ply
    engine = FailsAfter(6, "timed out")
    players = (engine, FIRST) if side == 0 else (FIRST, engine)
    result = play_hosted_match(game, *players, openings, KEY, lines.append)
    assert (result.forfeits == "timed out").all()
    assert (result.outcomes == (-1, 1)[side]).all()
    # Player 0 is to move after 6 plies, player 1 after 7.
    engine_first = 0 if side == 0 else 1
    assert (result.plies[engine_first] == 5).all()
    assert (result.plies[1 - engine_first] == 6).all()
    assert ((result.actions >= 0).sum(axis=2) == result.plies).all()
    assert len(lines) == 8
    assert lines[0] == "fails forfeited a game after 6 plies (timed out): it said: nothing"


def test_joined_parts_equal_whole_match():
    game = make_game("hex:3")
    openings = distinct_openings(game, 6, seed=0)
    parts = [play_hosted_match(game, FIRST, FirstLegal(), openings.take(slice(at, at + 2)), KEY) for at in (0, 2, 4)]
    assert_equal(join(parts), play_match(game, FIRST, FIRST, openings, KEY))
