"""Attention pictures draw the strongest edges between their nodes."""

import xml.etree.ElementTree as ET

import jax
import numpy as np
import pytest

import alphagat
from alphagat.agents.agent import load
from alphagat.agents.attention import make_attention
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.games.states import first_state
from alphagat.reporting import pictures
from alphagat.reporting.samples import Moment, SampleGame
from tests.serving.untrained import save_untrained

SVG = "{http://www.w3.org/2000/svg}"


def moment_of(game) -> Moment:
    return Moment(0, "", jax.device_get(first_state(game)), 0.0)


def test_wedges_point_from_receiver_to_sender(monkeypatch):
    agent = alphagat.load("hex", board="hex:3")
    monkeypatch.setattr(pictures, "MAX_EDGES", 7)
    moment, topology = moment_of(agent.game), agent.game.topology
    weights = make_attention(agent)(agent.params, jax.tree.map(lambda leaf: leaf[None], moment.state))[0].mean(axis=1)
    places = agent.game.node_places(moment.state)
    figures = list(ET.fromstring(pictures._draw_attention(agent, moment)))
    assert len(figures) == agent.config.network.num_blocks
    for figure, block_weights in zip(figures, np.asarray(weights), strict=True):
        (looks,) = figure.iter(f"{SVG}g")
        strongest = np.argsort(block_weights, kind="stable")[-7:]
        own = [edge for edge in strongest if topology.senders[edge] == topology.receivers[edge]]
        wedges = [edge for edge in strongest if edge not in own]
        assert len(looks.findall(f"{SVG}circle")) == len(own)
        drawn = looks.findall(f"{SVG}polygon")
        for edge, wedge in zip(wedges, drawn, strict=True):
            one, other, tip = np.array([point.split(",") for point in (wedge.get("points") or "").split()], float)
            np.testing.assert_allclose(tip, places[topology.senders[edge], :2], atol=0.06)
            np.testing.assert_allclose((one + other) / 2, places[topology.receivers[edge], :2], atol=0.11)


@pytest.mark.parametrize(
    ("value", "shown", "share"), [(0.5, "+0.50", "75.0%"), (-1.0, "-1.00", "0.0%"), (-0.25, "-0.25", "37.5%")]
)
def test_the_bar_of_a_value_grows_with_it(value, shown, share):
    game = make_game("hex:3")
    drawn = pictures._value(game, moment_of(game)._replace(value=value))
    assert drawn == f'<b>{shown}</b><span class=bar style="--share:{share}"></span>'


def test_attention_to_itself_is_the_mean_over_the_nodes(monkeypatch):
    agent = alphagat.load("hex", board="hex:3")
    topology = agent.game.topology
    own = topology.senders == topology.receivers
    weights = np.where(own, np.linspace(0, 0.5, len(own)), 0.25)
    monkeypatch.setattr(pictures, "make_attention", lambda _: lambda params, states: weights[None, None, None])
    (figure, *_) = ET.fromstring(pictures._draw_attention(agent, moment_of(agent.game)))
    assert next(figure.iter("b")).text == f"{weights[own].mean():.0%} on itself"


def test_pictures_name_the_blocks_that_attend(tmp_path):
    agent = load(save_untrained(tmp_path, "hex:2"))  # one block mixes, the next one attends
    (figure,) = ET.fromstring(pictures._draw_attention(agent, moment_of(agent.game)))
    assert next(figure.iter("span")).text == "block 2"


@pytest.mark.parametrize(
    ("num_moments", "says"), [(30, ""), (31, ", 30 of 31 positions"), (87, ", 30 of 87 positions")]
)
def test_a_long_game_says_that_positions_are_left_out(num_moments, says):
    game = make_game("hex:2")
    moments = [moment_of(game)] * num_moments
    drawn = pictures._draw_game(game, SampleGame(moments, "orange wins"))
    assert f"<h3>hex:2: <em>orange wins</em>{says}</h3>" in drawn
    assert drawn.count("<figcaption>") == 30


def test_no_picture_without_attention_or_places(tmp_path, monkeypatch):
    resnet = load(save_untrained(tmp_path, "hex:2", name="resnet"))
    assert pictures._draw_attention(resnet, moment_of(resnet.game)) == ""
    agent = load(save_untrained(tmp_path, "hex:2"))
    monkeypatch.setattr(type(agent.game), "node_places", Game.node_places)
    assert pictures._draw_attention(agent, moment_of(agent.game)) == ""


def test_two_boards_share_the_sample_games(tmp_path, monkeypatch):
    asked = []

    def play(agent, num_games):
        asked.append((agent.game.name, num_games))
        return [SampleGame([moment_of(agent.game)], "a draw")] * num_games

    monkeypatch.setattr(pictures, "play_samples", play)
    source = save_untrained(tmp_path, "hex:2", "hex:3")
    drawn = pictures.draw_checkpoint([load(source, board=board) for board in ("hex:2", "hex:3")])
    assert asked == [("hex:2", 1), ("hex:3", 1)]
    assert [drawn.count(f"<h3>{board}: <em>a draw</em></h3>") for board in ("hex:2", "hex:3")] == [1, 1]
    assert "On hex:3 after 0 plies" in drawn
