"""Overlays: positions, sizes and colours of their shapes."""

import re
import xml.etree.ElementTree as ET

import jax
import numpy as np
import pytest

from alphagat.evaluation.live_game import LiveGame
from alphagat.games import make_game, svg
from alphagat.games.places import MARGIN
from alphagat.games.states import first_state
from alphagat.reporting.overlays import attention_shapes, line_shapes, policy_shapes


def elements(shapes) -> list[ET.Element]:
    return list(ET.fromstring(f"<g>{''.join(shapes)}</g>").iter())


def test_areas_of_policy_discs_are_proportional_to_shares():
    game = make_game("hex:3")
    state, policy = jax.device_get(first_state(game)), np.zeros(9)
    policy[[2, 4, 7]] = 0.64, 0.357, 0.003
    shapes = elements(policy_shapes(game, state, policy))
    discs = {(float(each.get("cx", 0)), float(each.get("cy", 0))): each for each in shapes if each.tag == "circle"}
    places = [tuple(place.round(1)) for place in game.action_places(state)[:, :2]]
    assert set(discs) == {places[2], places[4]}  # the smallest share is omitted
    radii = [float(discs[places[action]].get("r", 0)) for action in (2, 4)]
    assert abs((radii[1] / radii[0]) ** 2 - 0.357 / 0.64) < 0.01
    assert [each.text for each in shapes if each.tag == "text"] == ["36", "64"]


def test_a_line_is_numbered_in_the_colours_of_the_players():
    game = make_game("connect_four")
    played = LiveGame(game)
    played.play("4")
    shapes = elements(line_shapes(game, played.position.state, [3, 3, 0, -1, 5]))
    discs = [each for each in shapes if each.tag == "circle"]
    assert [each.text for each in shapes if each.tag == "text"] == ["3", "2", "1"]
    assert [each.get("fill") for each in discs] == [svg.COLOURS[player] for player in (1, 0, 1)]
    heights = [float(each.get("cy", 0)) for each in discs]
    assert heights[0] > heights[2] > heights[1]  # the second stone is on top of the first, the third at the bottom


def test_a_line_ends_with_the_game():
    game = make_game("tic_tac_toe")
    state = LiveGame(game).position.state
    shapes = "".join(line_shapes(game, state, [0, 3, 1, 4, 2, 5, 6]))
    assert re.findall(r">(\d)<", shapes) == ["5", "4", "3", "2", "1"]


@pytest.mark.parametrize(("board", "column"), [("connect_four", True), ("2048", False), ("hex:3", False)])
def test_attention_of_a_column_is_drawn_at_its_label(board, column):
    game = make_game(board)
    state, topology = jax.device_get(first_state(game)), game.topology
    for node, (x, y, _, height) in enumerate(game.node_places(state)):
        to_itself = (topology.senders == node) & (topology.receivers == node)
        (disc,) = elements(attention_shapes(game, state, to_itself.astype(float), 1))[1:] or [None]
        if disc is not None:
            is_column = column and node >= topology.num_nodes - 7
            label = y + (height - MARGIN) / 2 if is_column else y
            assert (disc.get("cx"), disc.get("cy")) == (f"{x:.1f}", f"{label:.1f}")


def test_of_several_moves_to_one_place_the_most_likely_is_drawn():
    game = make_game("breakthrough:5")
    state, policy = jax.device_get(first_state(game)), np.zeros(game.num_actions)
    legal = LiveGame(game).position.legal_actions()
    for name, share in (("a2b3", 0.6), ("b2b3", 0.3), ("c2b3", 0.1)):
        policy[legal[name]] = share
    shapes = elements(policy_shapes(game, state, policy))
    assert [each.text for each in shapes if each.tag == "text"] == ["60"]


def test_of_several_moves_of_a_line_to_one_place_the_first_is_drawn():
    game = make_game("breakthrough:5")
    played, actions = LiveGame(game), []
    for name in ("b2b3", "c4b3", "a2b3"):  # both captures are there
        actions.append(played.position.legal_actions()[name])
        played.play(name)
    shapes = elements(line_shapes(game, LiveGame(game).position.state, actions))
    assert [each.text for each in shapes if each.tag == "text"] == ["1"]
