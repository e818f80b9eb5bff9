import chex
import jax
import numpy as np
import pytest

from alphagat.games import batches, make_game
from alphagat.games.batches import (
    batch_of_one,
    chunks,
    compile_init,
    compile_step,
    count,
    legal_actions,
    play_all,
    stack,
    take,
)


@pytest.mark.parametrize(("num_rows", "size"), [(0, 4), (3, 4), (4, 4), (9, 4)])
def test_chunks_cover_every_row_once(num_rows, size):
    assert [row for rows, _ in chunks(num_rows, size) for row in rows] == list(range(num_rows))


def test_chunks_are_padded_with_their_own_rows():
    padded = [padded.tolist() for _, padded in chunks(9, 4)]
    assert padded == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 8, 8, 8]]


def first_positions(game, num_positions):
    return jax.device_get(compile_init(game)(jax.random.split(jax.random.key(0), num_positions)))


def test_take_selects_rows_of_every_leaf():
    states = first_positions(make_game("hex:3"), 5)
    selected = take(states, [4, 0])
    assert count(selected) == 2
    chex.assert_trees_all_equal(selected, jax.tree.map(lambda x: np.stack([x[4], x[0]]), states))


def test_stacked_states_are_rows_of_their_batch():
    states = first_positions(make_game("hex:3"), 3)
    chex.assert_trees_all_equal(stack(take(states, row) for row in range(3)), states)
    chex.assert_trees_all_equal(batch_of_one(take(states, 2)), take(states, [2]))


def test_legal_actions_and_moves_do_not_depend_on_the_chunk_size(monkeypatch):
    game = make_game("tic_tac_toe")
    states = first_positions(game, 1)
    parents, actions = np.nonzero(legal_actions(game, states))
    after = play_all(game, states, parents, actions)
    masks = legal_actions(game, after)
    monkeypatch.setattr(batches, "CHUNK", 4)
    monkeypatch.setattr(batches, "chunks", lambda num_rows: chunks(num_rows, 4))
    chex.assert_trees_all_equal(play_all(game, states, parents, actions), after)
    np.testing.assert_array_equal(legal_actions(game, after), masks)


def test_play_all_plays_each_action_from_its_parent():
    game = make_game("tic_tac_toe")
    keys = jax.random.split(jax.random.key(0), 2)
    positions = jax.device_get(compile_step(game)(first_positions(game, 2), np.array([0, 4], np.int32), keys))
    after = play_all(game, positions, np.array([1, 0, 1]), np.array([0, 8, 8]))
    occupied = [np.flatnonzero(board).tolist() for board in after.board]
    assert occupied == [[0, 4], [0, 8], [4, 8]]


def test_programs_are_compiled_once_per_game():
    assert compile_step(make_game("hex:3")) is compile_step(make_game("hex:3"))
    assert compile_init(make_game("hex:3")) is not compile_init(make_game("hex:2"))


def test_no_moves_lead_to_no_states():
    game = make_game("hex:3")
    states = first_positions(game, 5)
    played = play_all(game, states, np.zeros(0, int), np.zeros(0, int))
    chex.assert_trees_all_equal_shapes_and_dtypes(played, take(states, slice(0)))
