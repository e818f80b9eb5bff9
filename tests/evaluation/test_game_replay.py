"""Recorded games lead through the positions that the rules give, and what breaks the rules is named."""

import dataclasses

import chex
import jax
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.evaluation import game_replay
from alphagat.evaluation.game_files import GameRecord, records_of
from alphagat.evaluation.game_replay import play_again
from alphagat.games import make_game
from alphagat.games.batches import take
from alphagat.games.states import first_state
from tests.evaluation.test_game_files import KEY, random_match

LEGAL = GameRecord("tic_tac_toe", ("A", "B"), ("a1", "b1", "a2", "b2", "a3"), (0, 1, 0, 1, 0), 1)


# A turned board, passes, a swap.
@pytest.mark.parametrize("name", ["breakthrough:5", "othello:4", "hex:3:swap"])
def test_replayed_positions_follow_the_rules(name, monkeypatch):
    monkeypatch.setattr(game_replay, "CHUNK", 3)  # of four games
    game, openings, result = random_match(name, 2)
    records = records_of(game, ("A", "B"), openings, result)
    played = play_again(game, records, ["game"] * len(records))
    assert played.results.tolist() == [record.outcome for record in records]
    assert np.bincount(played.games).tolist() == [len(record.moves) for record in records]
    step = jax.jit(game.step)
    for number, record in enumerate(records):
        state, rows = first_state(game), np.flatnonzero(played.games == number)
        for row, move, player in zip(rows, record.moves, record.players, strict=True):
            chex.assert_trees_all_equal(take(played.states, row), state)
            assert game.action_name(state, int(played.actions[row])) == move
            assert state.current_player == player
            state = step(state, played.actions[row], KEY)
        chex.assert_trees_all_equal(take(played.ends, number), state)


def test_unfinished_game_has_no_result():
    record = dataclasses.replace(LEGAL, moves=LEGAL.moves[:3], players=LEGAL.players[:3])
    played = play_again(make_game("tic_tac_toe"), [LEGAL, record], ["one", "two"])
    np.testing.assert_array_equal(played.results, [1, np.nan])
    assert np.asarray(played.ends.terminated).tolist() == [True, False]


def test_a_game_is_cut_where_the_rules_end_it():
    """Its neighbours in the batch are not, and the end of each game stays its own."""
    record = dataclasses.replace(LEGAL, moves=(*LEGAL.moves, "b3", "z9"), players=(0, 1, 0, 1, 0, 1, 1))
    other = dataclasses.replace(LEGAL, moves=("b2", "a1", "b1", "b3", "c1", "a3"), players=(0, 1) * 3)
    played = play_again(make_game("tic_tac_toe"), [record, other, LEGAL], ["one", "two", "three"])
    assert np.bincount(played.games).tolist() == [5, 6, 5]
    assert [played.to_go[played.games == game].tolist()[0] for game in range(3)] == [4, 5, 4]
    assert np.asarray(played.ends.terminated).tolist() == [True, False, True]
    np.testing.assert_array_equal(played.results, [1, np.nan, 1])
    chex.assert_trees_all_equal(take(played.ends, 0), take(played.ends, 2))


@pytest.mark.parametrize(
    ("moves", "players", "expected"),
    [
        (("a1", "b1", "a1"), (0, 1, 0), "games, game 2, move 3: 'a1' is not legal"),
        (("a1", "z9"), (0, 1), "move 2: 'z9' is not legal"),
        (("a1", "b1"), (0, 0), "move 2: player 0 plays 'b1', but it is the turn of player 1"),
    ],
)
def test_rule_violation_is_named(moves, players, expected):
    wrong = dataclasses.replace(LEGAL, moves=moves, players=players)
    with pytest.raises(UserError, match=expected):
        play_again(make_game("tic_tac_toe"), [LEGAL, wrong], ["games, game 1", "games, game 2"])
