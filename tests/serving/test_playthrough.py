"""Tests the replay of games from their moves."""

from typing import Any

import chex
import jax
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.serving import playthrough
from alphagat.serving.playthrough import Playthroughs


def test_moves_by_name_and_by_number_are_equivalent():
    games = Playthroughs(make_game("breakthrough:5"))
    named = games.replay(0, ["b2b3", "c4c3", "b3c4"])
    assert [step.player for step in named.steps] == [0, 1, 0]
    numbered = games.replay(0, [step.action for step in named.steps])
    assert named.steps == numbered.steps
    chex.assert_trees_all_equal(named.state, numbered.state)


def test_a_name_made_of_digits_is_not_taken_for_the_number_of_an_action():
    games = Playthroughs(make_game("connect_four"))
    assert [games.replay(0, [move]).steps[0].action for move in ("4", 4)] == [3, 4]


def test_returns_are_those_of_the_winner():
    games = Playthroughs(make_game("tic_tac_toe"))
    game = games.replay(0, ["a1", "a2", "b1", "b2", "c1"])
    assert game.state.terminated
    assert game.legal == ()
    assert game.returns.tolist() == [1, -1]
    with pytest.raises(UserError, match="move 6, c2: the game is over"):
        games.replay(0, ["a1", "a2", "b1", "b2", "c1", "c2"])


@pytest.mark.parametrize("move", ["a1", 6, "z9", 9, 2**31 - 1, "", "legal"])
def test_illegal_moves_raise(move):
    games = Playthroughs(make_game("tic_tac_toe"))
    with pytest.raises(UserError, match=f"move 2, {move}: it is not legal there"):
        games.replay(0, ["a1", move])
    assert len(games.replay(0, ["a1", "a2"]).steps) == 2


def test_chance_depends_on_the_seed_only():
    games = Playthroughs(make_game("2048:2"))

    def play(seed):
        moves, boards = [], []
        while not (game := games.replay(seed, moves)).state.terminated:
            boards.append(game.state.board.tolist())
            moves.append(game.legal[0])
        return moves, boards, game.returns[0]

    moves, boards, points = play(3)
    again = Playthroughs(make_game("2048:2")).replay(3, moves)
    assert (again.returns[0], again.state.terminated) == (points, True)
    assert points > 0
    assert any(play(seed)[1] != boards for seed in (4, 5, 6))


def test_every_ply_has_its_own_key():
    game, seed = make_game("2048:3"), 5
    key, step, moves = jax.random.key(seed), jax.jit(game.step), []
    state = game.init(jax.random.fold_in(key, 0))
    for ply in range(1, 7):
        moves.append(int(np.flatnonzero(state.legal_action_mask)[0]))
        state = step(state, np.int32(moves[-1]), jax.random.fold_in(key, ply))
    np.testing.assert_array_equal(Playthroughs(game).replay(seed, moves).state.board, state.board)


def test_no_two_tiles_are_drawn_with_one_key(monkeypatch):
    game: Any = make_game("2048:3")
    draw, keys = game.draw, []

    def draw_and_record(afterstate: Any, key: jax.Array) -> jax.Array:
        jax.debug.callback(lambda data: keys.append(tuple(data.tolist())), jax.random.key_data(key))
        return draw(afterstate, key)

    monkeypatch.setattr(game, "draw", draw_and_record)
    games, moves = Playthroughs(game), []
    for _ in range(5):
        moves.append(games.replay(5, moves).legal[0])
    games.replay(5, moves)
    jax.effects_barrier()
    assert len(set(keys)) == len(keys) == 2 + len(moves)


def test_known_positions_are_cached(monkeypatch):
    monkeypatch.setattr(playthrough, "MAX_KEPT", 4)
    games = Playthroughs(make_game("tic_tac_toe"))
    steps = []
    step = games._step
    monkeypatch.setattr(games, "_step", lambda *arguments: steps.append(1) or step(*arguments))
    games.replay(0, ["a1", "a2", "b1"])
    assert len(steps) == 3
    games.replay(0, ["a1", "a2"])
    games.replay(0, ["a1", "a2", "c1"])
    assert len(steps) == 4
    games.replay(1, ["a1"])  # another seed is another game
    games.replay(0, ["a1", "a2", "b1"])  # partly evicted from the cache
    assert 5 < len(steps) <= 8
