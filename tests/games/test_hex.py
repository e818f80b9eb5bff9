"""Hex against OpenSpiel's, move by move, and what its features promise."""

import numpy as np
import pyspiel
import pytest

from alphagat.games import make_game, svg
from alphagat.games.hex import VOCABULARY
from tests.games.open_spiel import assert_plays_alike, count_actions
from tests.games.playing import play


@pytest.mark.parametrize(
    ("name", "theirs", "num_games"),
    [
        ("hex:2", "hex(board_size=2)", 200),
        ("hex:3", "hex(board_size=3)", 1000),
        ("hex:5", "hex(board_size=5)", 1000),
        ("hex:8", "hex(board_size=8)", 200),
        ("hex:11", "hex(board_size=11)", 100),
        ("hex:2:swap", "hex(board_size=2,swap=true)", 200),
        ("hex:3:swap", "hex(board_size=3,swap=true)", 1000),
        ("hex:5:swap", "hex(board_size=5,swap=true)", 1000),
    ],
)
def test_matches_open_spiel(name, theirs, num_games, record):
    games, spiel = record(name, num_games), pyspiel.load_game(theirs)
    assert_plays_alike(games, spiel, num_games)
    swaps = count_actions(games, make_game(name).size ** 2, num_games)
    assert bool(swaps) == name.endswith("swap")


def test_swap_moves_stone_to_mirrored_cell_once():
    state = play("hex:3:swap", "b1 swap")
    assert np.sign(state.cells).reshape(3, 3).tolist() == [[0, 0, 0], [-1, 0, 0], [0, 0, 0]]
    assert state.current_player == 0
    assert not state.legal_action_mask[-1]
    assert play("hex:3:swap", "b1").legal_action_mask[-1]
    assert not play("hex:3:swap", "b1 b2").legal_action_mask[-1]
    assert not play("hex:3:swap", "").legal_action_mask[-1]


def test_swapped_stone_keeps_border_connection():
    # a2 was taken over at the left border: two more stones reach the right one.
    assert play("hex:3:swap", "b1 swap a1 b2 a3 c2").rewards.tolist() == [-1, 1]
    # b2 has no border: it must not count as one of the left.
    assert not play("hex:3:swap", "b2 swap a1 c2").terminated


def test_drawings_show_stones_results_and_swap_option():
    game = make_game("hex:3:swap")
    lines = game.render(play("hex:3:swap", "b1 c2")).split("\n")
    assert lines == ["   a b c", " 1 . x .", "  2 . . o", "   3 . . .", "x to move, top to bottom"]
    assert game.render(play("hex:3:swap", "b1")).endswith("or swap")
    assert game.render(play("hex:3:swap", "b1 c2 b2 c3 b3")).endswith("x won")
    assert game.render(play("hex:3:swap", "b1 swap a1 b2 a3 c2")).endswith("o won")
    drawing = game.render_svg(play("hex:3:swap", "b1 c2 b3"))
    # Each player has two borders besides the stones.
    assert [drawing.count(colour) for colour in svg.COLOURS] == [2 + 2, 2 + 1]


def test_features_show_own_stones_borders_and_connections():
    game = make_game("hex:3")
    #  a b c          player 0 (x, top to bottom) is to move
    # 1 . x .
    #  2 . . o
    #   3 o . x
    state = play("hex:3", "b1 c2 c3 a3")
    own, opponent, empty, connected, swap, *chains = np.asarray(game.observe(state)).T
    assert own[:9].reshape(3, 3).tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1]]
    assert opponent[:9].reshape(3, 3).tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0]]
    assert empty[:9].reshape(3, 3).tolist() == [[1, 0, 1], [1, 1, 0], [0, 1, 0]]
    assert connected[:9].reshape(3, 3).tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 1]]
    assert own[9:].tolist() == [1, 1, 0, 0]
    assert opponent[9:].tolist() == [0, 0, 1, 1]
    assert not swap.any()
    # Player 0 needs stones on b2 and b3. Player 1 has a bridge from a3 to c2; any other chain needs a stone more.
    through_own, through_opponent, own_shortest, opponent_shortest = chains
    assert through_own[:9].reshape(3, 3).tolist() == [[0, 1, 0], [0, 1, 0], [0, 1, 1]]
    assert through_opponent[:9].reshape(3, 3).tolist() == [[0.25, 0, 0.5], [0.5, 0.5, 1], [1, 0.5, 0]]
    assert not through_own[9:].any()
    assert not through_opponent[9:].any()
    assert own_shortest.tolist() == [2 / 8] * 13
    assert opponent_shortest.tolist() == [0] * 13


def test_features_show_legal_swap():
    game = make_game("hex:3:swap")
    for moves, legal in (("", 0), ("b2", 1), ("b2 swap", 0), ("b2 b1", 0)):
        *others, swap = np.asarray(game.observe(play("hex:3:swap", moves)))[:, 4]
        assert swap == legal
        assert not any(others)


def test_relations_describe_sender_from_receiver_view():
    topology = make_game("hex:5").topology
    centre, relation = 2 * 5 + 2, VOCABULARY.index
    matrix = topology.relation_matrix
    assert matrix[centre, 1 * 5 + 3] == relation("cell at (-1,+1)")
    assert matrix[1 * 5 + 3, centre] == relation("cell at (+1,-1)")
    assert matrix[0, 24] == matrix[0, 2 * 5 + 2] == -1  # not neighbours
    top, bottom, left, right = range(25, 29)
    assert matrix[top, :25:5].tolist() == [relation("cell>border"), -1, -1, -1, -1]
    assert matrix[:5, right].tolist() == [-1, -1, -1, -1, relation("border>cell")]
    assert matrix[top, bottom] == matrix[right, left] == relation("border opposite")
    assert matrix[top, left] == matrix[right, bottom] == relation("border adjacent")


def test_sizes_share_one_vocabulary():
    assert make_game("hex:2").topology.vocabulary is make_game("hex:19:swap").topology.vocabulary
    assert make_game("hex:19").num_features == make_game("hex:5:swap").num_features
