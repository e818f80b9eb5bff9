"""Where nodes and actions are drawn: what a move changes in the drawing lies at the place of the move."""

import re
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.games import make_game
from alphagat.games.states import first_state

BOARDS = ("tic_tac_toe", "mnk:4x5x3:gravity", "hex:4:swap", "othello:4", "breakthrough:5", "go:5", "gardner_chess")


def middles(drawing: str) -> dict[str, tuple[float, float]]:
    """Returns the middle of each shape, by its source."""
    found = {}
    for shape in ElementTree.fromstring(drawing):
        at = {name: float(value) for name, value in shape.items() if re.fullmatch(r"[\d.-]+", value)}
        x, y = at.get("cx", at.get("x", 0.0)), at.get("cy", at.get("y", 0.0))
        if points := shape.get("points"):
            x, y = np.array([point.split(",") for point in points.split()], float).mean(axis=0)
        found[ElementTree.tostring(shape).decode()] = (x + at.get("width", 0) / 2, y + at.get("height", 0) / 2)
    return found


@pytest.mark.parametrize("board", BOARDS)
def test_move_changes_drawing_at_its_place(board):
    game, random = make_game(board), np.random.default_rng(0)
    state, step = first_state(game), jax.jit(game.step)
    for _ in range(12):
        legal = np.flatnonzero(state.legal_action_mask)
        if not len(legal):
            break
        action = int(random.choice(legal))
        x, y, width, height = game.action_places(state)[action]
        before = middles(game.render_svg(state))
        leaves = game.node_places(state)[game.topology.action_senders[action]]
        state = step(state, jnp.int32(action), jax.random.key(1))
        after = middles(game.render_svg(state))
        if np.isnan(x):
            assert game.action_names[action] in ("swap", "pass")
            continue
        new = np.array([after[shape] for shape in after.keys() - before.keys()])
        assert ((abs(new - (x, y)) < (width / 4, height / 4)).all(axis=-1)).any()
        if leaves[0] != x and "gravity" not in board:
            gone = np.array([before[shape] for shape in before.keys() - after.keys()])
            assert ((abs(gone - leaves[:2]) < leaves[2:] / 4).all(axis=-1)).any()


def test_column_contains_landing_cell():
    game = make_game("mnk:4x5x3:gravity")
    state = first_state(game)
    columns, cells = game.node_places(state)[20:], game.action_places(state)
    assert np.array_equal(columns[:, 0], cells[:, 0])
    assert (abs(columns[:, 1] - cells[:, 1]) + cells[:, 3] / 2 < columns[:, 3] / 2).all()


def test_2048_tiles_are_placed_at_their_numbers():
    game = make_game("2048:3")
    state = first_state(game)
    places = game.node_places(state)
    numbers = [at for shape, at in middles(game.render_svg(state)).items() if "font-weight" in shape]
    tiles = places[np.flatnonzero(state.board)]
    assert np.array_equal(sorted(numbers), sorted(tiles[:, :2].tolist()))
    left, up, right, down = game.action_places(state)[:, :2] - places[4, :2]
    assert left[0] == -right[0] < 0 == left[1]
    assert up[1] == -down[1] < 0 == up[0]


def test_black_sees_board_rotated():
    game = make_game("gardner_chess")
    state = first_state(game)
    white, black = (game.node_places(state.replace(current_player=jnp.int8(player))) for player in (0, 1))
    assert white[0, 1] < white[-1, 1]
    assert black[0, 1] > black[-1, 1]
    assert np.array_equal(white[:, 0], black[:, 0])


def test_game_without_node_places_has_no_places():
    game = make_game("pgx:tic_tac_toe")
    assert np.isnan(game.action_places(first_state(game))).all()
