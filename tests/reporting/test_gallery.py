"""Galleries: layout, shared drawings and overlays."""

import xml.etree.ElementTree as ET

import jax
import numpy as np

import alphagat
from alphagat.games import make_game
from alphagat.games.states import first_state
from alphagat.reporting.gallery import Picture, attention_picture, draw_analysis, draw_game, gallery
from alphagat.reporting.overlays import line_shapes, policy_shapes
from alphagat.serving.protocols.thinking import Thinker

SVG = "{http://www.w3.org/2000/svg}"
DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="100"><rect id="{}"/></svg>'


def test_pictures_are_laid_out_in_rows():
    one, other = DRAWING.format("one"), DRAWING.format("other")
    pictures = [
        Picture(one, "first\nA & B"),
        Picture(other, "second"),
        Picture(one, "third", ["<circle/>"], faded=True),
    ]
    root = ET.fromstring(gallery(pictures, columns=2, width=100))
    places = root.findall(f"{SVG}svg")
    assert [(float(each.get("x", 0)), float(each.get("height", 0))) for each in places] == [(0, 50), (116, 50), (0, 50)]
    assert float(places[0].get("y", 0)) == float(places[1].get("y", 0)) < float(places[2].get("y", 0))
    assert all(each.get("viewBox") == "0 0 200 100" for each in places)
    drawings = {f"#{each.get('id')}": each[0].get("id") for each in root.findall(f"{SVG}defs/{SVG}g")}
    uses = [each.find(f"{SVG}use") for each in places]
    assert [drawings[use.get("href")] for use in uses if use is not None] == ["one", "other", "one"]
    assert [float(use.get("opacity", 0)) < 1 for use in uses if use is not None] == [False, False, True]
    assert [len(each.findall(f"{SVG}circle")) for each in places] == [0, 0, 1]
    assert [each.text for each in root.findall(f"{SVG}text")] == ["first", "A & B", "second", "third"]
    inside = float(root.get("height", 0))
    assert all(0 < float(each.get("y", 0)) < inside for each in root.findall(f"{SVG}text"))


def test_a_game_is_drawn_at_equal_steps():
    root = ET.fromstring(draw_game(make_game("tic_tac_toe"), ["a3", "a2", "b3", "b2", "c3"], number=3, columns=3))
    assert [each.text for each in root.findall(f"{SVG}text")] == ["2. a2", "3. b3", "5. c3"]


def test_an_analysis_shows_network_search_and_line():
    agent = alphagat.load("hex", board="hex:3")
    state = jax.device_get(first_state(agent.game))
    analysis = Thinker(agent, 8).analyze(state)
    root = ET.fromstring(draw_analysis(agent.game, state, analysis))
    captions = [each.text for each in root.findall(f"{SVG}text")]
    assert captions[0] == f"network alone: value {float(analysis.network_value):+.2f}"
    assert captions[1] == f"with search: value {float(analysis.value):+.2f}"
    assert (captions[2] or "").startswith(f"best line: {agent.game.action_names[analysis.action]}")
    assert len(root.findall(f"{SVG}defs/{SVG}g")) == 1
    alone, searched = ("".join(policy_shapes(agent.game, state, each)) for each in (analysis.prior, analysis.policy))
    drawn = draw_analysis(agent.game, state, analysis)
    assert alone != searched
    assert 0 < drawn.index(alone) < drawn.index(searched)


def test_attention_draws_the_strongest_edges():
    game = make_game("hex:3")
    state = jax.device_get(first_state(game))
    weights = np.zeros(len(game.topology.senders))
    weights[np.flatnonzero(game.topology.senders != game.topology.receivers)[[0, 5, 9]]] = 0.2, 0.3, 0.5
    assert "".join(attention_picture(game, state, weights, "").over).count("<polygon") == 3
    assert "".join(attention_picture(game, state, weights, "", max_edges=2).over).count("<polygon") == 2


def test_a_row_has_room_for_its_tallest_drawing_and_longest_caption():
    low, high = DRAWING.format("low"), DRAWING.format("high").replace('height="100"', 'height="200"')
    pictures = [Picture(low, "one\ntwo\nthree"), Picture(high, "one"), Picture(low, "")]
    root = ET.fromstring(gallery(pictures, columns=2, width=100))
    first, second, third = (
        (float(each.get("y", 0)), float(each.get("height", 0))) for each in root.findall(f"{SVG}svg")
    )
    assert sum(first) == sum(second)
    assert max(float(each.get("y", 0)) for each in root.findall(f"{SVG}text")) < third[0]


def test_a_gallery_is_as_wide_as_its_pictures():
    pictures = [Picture(DRAWING.format("one"), "")]
    assert float(ET.fromstring(gallery(pictures, columns=3, width=100)).get("width", 0)) == 100


def test_the_best_line_is_drawn():
    agent = alphagat.load("hex", board="hex:3")
    state = jax.device_get(first_state(agent.game))
    analysis = Thinker(agent, 8).analyze(state)
    assert "".join(line_shapes(agent.game, state, analysis.variation)) in draw_analysis(agent.game, state, analysis)
