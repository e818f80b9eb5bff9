"""The rating curve: known positions, and an SVG that is legible on any background and deterministic."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from alphagat.evaluation.ratings import Rating
from alphagat.monitoring.charts import BOTTOM, LINE, TOP, WIDTH
from alphagat.monitoring.rating_curve import draw, player_name, rated_players, table

RATINGS = {
    "iteration 12": Rating(500, 420, 610),
    "mcts:100": Rating(300, 250, 360),
    "iteration 4": Rating(200, 120, 310),
    "iteration 0": Rating(-20, -80, 40),
    "random": Rating(0, 0, 0),
}
LINES = [{"iteration": n, "frames": 64.0 * n, "hours": n / 10} for n in range(1, 9)]


def draw_text(folder: Path, curves, title="hex:5") -> str:
    draw(folder / "elo.svg", curves, title)
    return (folder / "elo.svg").read_text()


def test_players_have_positions_and_order():
    players = rated_players(RATINGS, LINES)
    assert [each.name for each in players] == ["random", "mcts:100", "iteration 0", "iteration 4", "iteration 12"]
    assert [each.iteration for each in players] == [None, None, 0, 4, 12]
    assert [each.frames for each in players] == [None, None, 0, 256, None]
    assert [each.hours for each in players] == [None, None, 0, 0.4, None]
    assert players[3][4:] == (200, 120, 310)
    assert player_name(12.0) == "iteration 12"
    assert rated_players({"iteration ²": Rating(0, 0, 0)}, LINES)[0].iteration is None


def test_pretraining_has_no_frames(tmp_path):
    lines = [{"iteration": number, "hours": 0.1 * number} for number in (4, 12)]
    players = rated_players(RATINGS, lines)
    assert [each.frames for each in players] == [None] * 5
    assert ">frames<" not in draw_text(tmp_path, {"hex:5": players})


def test_table_has_a_row_per_player():
    console = Console(width=100)
    with console.capture() as capture:
        console.print(table("hex:5", rated_players(RATINGS, LINES)))
    rows = [re.split(r"\s*│\s*", row)[1:-1] for row in capture.get().splitlines() if "│" in row]
    assert rows[1] == ["mcts:100", "", "", "300", "250 to 360"]
    assert rows[3] == ["iteration 4", "256", "0.40", "200", "120 to 310"]
    assert rows[4] == ["iteration 12", "", "", "500", "420 to 610"]


def test_three_panels_without_a_background(tmp_path):
    text = draw_text(tmp_path, {"hex:5": rated_players(RATINGS, LINES)})
    root = ElementTree.fromstring(text)
    words = [each.strip() for each in root.itertext() if each.strip()]
    assert [words.count(name) for name in ("iterations", "frames", "hours of training")] == [1, 1, 1]
    assert words.count("random") == words.count("mcts:100") == 3
    # Neither white nor black: the curve must be legible on both.
    assert not re.search(r"#(000000|ffffff)\b|fill: (black|white)", re.sub(r"clip-path.*", "", text).lower())


def test_unknown_axes_have_no_panel(tmp_path):
    text = draw_text(tmp_path, {"hex:5": rated_players({"iteration 4": RATINGS["iteration 4"]}, [])})
    assert ">iterations<" in text
    assert "hours of training" not in text


def test_one_board_needs_no_legend(tmp_path):
    text = draw_text(tmp_path, {"hex:5": rated_players(RATINGS, LINES)}, "one")
    assert "<tspan" not in text


def test_without_networks_there_is_a_title_and_no_panel(tmp_path):
    root = ElementTree.fromstring(draw_text(tmp_path, {"hex:5": []}, "<none>"))
    assert [each for each in root.itertext() if each in ("<none>", "iterations")] == ["<none>"]
    assert int(root.get("width") or 0) == WIDTH


def test_each_board_has_a_curve(tmp_path):
    players = rated_players(RATINGS, LINES)
    text = draw_text(tmp_path, {"hex:5": players, "hex:7": players}, "both")
    assert {"hex:5", "hex:7"} <= set(ElementTree.fromstring(text).itertext())
    assert "#2a8fd8" in text
    assert "#d9792b" in text


@pytest.mark.parametrize("elo", [200.0, 610.0, -75.0])
def test_labels_of_players_with_nearly_equal_ratings_do_not_overlap(tmp_path, elo):
    """They may be anywhere between the lowest and the highest rating; the second board has one equal player."""
    near = {f"mcts:{number}": Rating(elo + number / 10, elo, elo) for number in range(5)}
    boards = {"hex:5": rated_players(RATINGS | near, LINES), "hex:7": rated_players({"random": RATINGS["random"]}, [])}
    root = ElementTree.fromstring(draw_text(tmp_path, boards))
    panel = next(root.iter("{http://www.w3.org/2000/svg}g"))
    players = {"random", "mcts:100", *near}
    found = [(each.text, float(each.get("y", ""))) for each in panel.iter() if each.text in players]
    heights = sorted(y for _, y in found)
    assert sorted(name for name, _ in found) == sorted(players)
    assert min(np.diff(heights)) >= LINE - 0.11  # rounded to a tenth
    assert heights[0] >= TOP
    assert heights[-1] <= BOTTOM


def test_the_file_is_deterministic(tmp_path):
    curves = {"hex:5": rated_players(RATINGS, LINES)}
    assert draw_text(tmp_path, curves) == draw_text(tmp_path, curves)
    assert [path.name for path in tmp_path.iterdir()] == ["elo.svg"]


def test_each_panel_places_networks_on_its_own_axis(tmp_path):
    root = ElementTree.fromstring(draw_text(tmp_path, {"hex:5": rated_players(RATINGS, LINES)}))
    tips = [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert [tip for tip in tips if " 200 at " in tip] == [f"hex:5: 200 at {place}" for place in ("4", "256", "0.4")]
