"""Charts place every point by its axes and preserve the mean of long curves."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from alphagat.monitoring.charts import (
    BOTTOM,
    LEFT,
    MAX_POINTS,
    RIGHT,
    TOP,
    Curve,
    draw_chart,
    smooth,
    stroke_of,
    tick_text,
)


def curve(places, values, spread=0.0) -> Curve:
    places, values = np.array(places, float), np.array(values, float)
    return Curve("loss <1>", places, values, values - spread, values + spread)


def points(text: str) -> np.ndarray:
    return np.array([[float(number) for number in pair.split(",")] for pair in text.split()])


@pytest.mark.parametrize(
    ("labels", "name"), [(["", ""], "Elo over hours"), (["network", "search"], "Elo: network, search over hours")]
)
def test_the_name_for_screen_readers_has_the_title_and_the_labels(labels, name):
    curves = [curve([0, 1], [0.0, 1.0])._replace(label=label) for label in labels]
    drawing = ET.fromstring(draw_chart("Elo", curves, "hours", 1, tick_text, True))
    assert drawing.get("aria-label") == name


def test_points_are_placed_by_the_axes():
    drawing = ET.fromstring(
        draw_chart("Elo", [curve([0, 5, 10], [0.0, 1.0, 0.25], 0.1)], "frames", 10, tick_text, True)
    )
    (line,) = drawing.findall("polyline")
    middle = (LEFT + RIGHT) / 2
    expected = [[LEFT, BOTTOM], [middle, TOP], [RIGHT, BOTTOM - (BOTTOM - TOP) / 4]]
    np.testing.assert_allclose(points(line.get("points") or ""), expected, atol=0.06)
    (band,) = drawing.findall("polygon")
    height = (BOTTOM - TOP) / 10
    np.testing.assert_allclose(
        points(band.get("points") or "")[:, 1][[0, -1]], [BOTTOM - height, BOTTOM + height], atol=0.06
    )
    ticks = {
        text.text: float(text.get("y") or 0) - 3.5
        for text in drawing.findall("text")
        if text.get("text-anchor") == "end"
    }
    assert ticks["0"] == BOTTOM
    assert ticks["1"] == TOP


def test_one_point_is_a_dot_with_its_interval():
    drawing = ET.fromstring(draw_chart("Elo", [curve([6], [-34.0], 100)], "iterations", 6, tick_text, False))
    (dot,) = drawing.findall("circle")
    assert (dot.findtext("title") or "") == "loss <1>: -34 at 6"
    assert float(dot.get("cx") or 0) == RIGHT
    (interval,) = drawing.findall("polyline")
    top, bottom = points(interval.get("points") or "")[:, 1]
    assert TOP <= top < float(dot.get("cy") or 0) < bottom <= BOTTOM


def test_long_curves_are_averaged_over_equal_intervals():
    values = np.arange(2 * MAX_POINTS + 3) % 2  # averages to 0.5 over intervals of even length
    drawing = draw_chart("Elo", [curve(np.arange(len(values)), values)], "iterations", len(values), tick_text, True)
    assert "<circle" not in drawing
    found = re.search(r'<polyline class="curve" points="([^"]*)"', drawing)
    assert found
    drawn = points(found[1])
    assert MAX_POINTS / 2 < len(drawn) <= MAX_POINTS
    inside = drawn[:-1, 1]
    np.testing.assert_allclose(inside.mean(), (TOP + BOTTOM) / 2, atol=1)
    np.testing.assert_allclose(np.diff(drawn[:-1, 0]), np.diff(drawn[:2, 0])[0], atol=0.11)


@pytest.mark.parametrize(
    ("end", "axis", "ticks"),
    [
        (1, "iterations", ["0", "1"]),
        (12, "iterations", ["0", "5", "10"]),
        (7, "iterations", ["0", "2", "4", "6"]),
        (0.3, "hours", ["0", "0.1", "0.2", "0.3"]),
        (1.3e6, "frames", ["0", "500 k", "1 M"]),
        (2.6e6, "frames", ["0", "1 M", "2 M"]),
        (6.1e4, "frames", ["0", "20 k", "40 k", "60 k"]),
    ],
)
def test_ticks_are_round_numbers(end, axis, ticks):
    drawing = ET.fromstring(draw_chart("Elo", [curve([0, end], [0, 1])], axis, end, tick_text, True))
    assert [each.text for each in drawing.findall("text") if each.get("text-anchor") == "middle"] == ticks


@pytest.mark.parametrize(
    ("value", "text"), [(0.05, "0.05"), (1_500, "1,500"), (9_999.7, "10 k"), (-9_999.7, "-10 k"), (-0.0, "0")]
)
def test_a_tick_has_a_unit_after_rounding(value, text):
    assert tick_text(value) == text


@pytest.mark.parametrize("value", [60.0, 0.1, -42.0])
def test_values_that_differ_by_rounding_are_drawn_as_equal(value):
    values = [value, np.nextafter(value, np.inf)]
    drawing = ET.fromstring(draw_chart("Elo", [curve([0, 1], values)], "iterations", 1, tick_text, True))
    assert len([each for each in drawing.findall("text") if each.get("text-anchor") == "end"]) > 1


def test_a_long_label_at_the_edge_fits_into_the_drawing():
    drawing = ET.fromstring(draw_chart("Elo", [curve([0, 1000], [0, 1])], "iterations", 1000, tick_text, True))
    (label,) = (each for each in drawing.findall("text") if each.text == "1,000")
    assert RIGHT - 10 < float(label.get("x") or 0) < RIGHT - 5


def test_levels_lie_within_the_axis():
    levels = {"<random>": -300.0}
    drawing = ET.fromstring(
        draw_chart("Elo", [curve([0, 6], [0, 90])._replace(levels=levels)], "hours", 6, tick_text, False)
    )
    (line,) = [each for each in drawing.findall("line") if each.get("stroke-dasharray")]
    assert TOP < float(line.get("y1") or 0) <= BOTTOM
    assert "<random>" in drawing.itertext()


def test_a_long_curve_without_intervals_is_drawn_pale_below_its_average():
    def lines(number, low):
        places, values = np.arange(number, dtype=float), np.arange(number, dtype=float) % 2
        curve = Curve("", places, values, values - low, values)
        return re.findall(
            r'<polyline class="curve"[^>]*>', draw_chart("Elo", [curve], "iterations", number, str, False)
        )

    assert [("stroke-opacity" in each) for each in lines(100, 0)] == [True, False]
    assert [("stroke-opacity" in each) for each in lines(20, 0)] == [False]
    assert [("stroke-opacity" in each) for each in lines(100, 1)] == [False]


def test_the_average_of_a_long_curve_has_less_noise():
    places = np.arange(100, dtype=float)
    noisy = curve(places, places % 2)
    drawing = ET.fromstring(draw_chart("Elo", [noisy], "iterations", 100, tick_text, True))
    values, average = (points(each.get("points") or "")[50:, 1] for each in drawing.findall("polyline"))
    assert np.ptp(values) == BOTTOM - TOP
    assert 0 < np.ptp(average) < (BOTTOM - TOP) / 2


def test_the_average_weighs_values_by_their_age():
    values = np.random.default_rng(0).normal(size=30)
    weights = 0.5 ** (np.subtract.outer(np.arange(30), np.arange(30)) / 4.0)  # of value j in mean i
    weights = np.tril(weights)
    np.testing.assert_allclose(smooth(values, 4.0), weights @ values / weights.sum(axis=1))


@pytest.mark.parametrize("length", [10, 100])  # with and without an average
def test_many_curves_differ_in_stroke_and_are_named_by_tooltips(length):
    places = np.arange(length, dtype=float)
    curves = [Curve(f"<{number}>", places, places, places, places) for number in range(30)]
    drawing = ET.fromstring(draw_chart("Elo", curves, "iterations", length, tick_text, False))
    lines = [each for each in drawing.findall("polyline") if not each.get("stroke-opacity")]
    strokes = [(each.get("stroke"), each.get("stroke-dasharray")) for each in lines]
    assert len(set(strokes)) == 30
    assert strokes[0] == (stroke_of(0).colour, None)
    assert [each.findtext("title") for each in lines] == [each.label for each in curves]


def test_the_tooltip_of_a_dot_names_only_a_curve_with_a_label():
    only = curve([6], [0.5])._replace(label="")
    drawing = ET.fromstring(draw_chart("Elo", [only], "iterations", 6, tick_text, False))
    assert [each.findtext("title") for each in drawing.findall("circle")] == ["0.5 at 6"]


def test_the_tooltip_of_a_dot_writes_its_value_as_the_axis_does():
    drawing = ET.fromstring(draw_chart("Score", [curve([6], [0.5])], "iterations", 6, "{:.0%}".format, True))
    assert [each.findtext("title") for each in drawing.findall("circle")] == ["loss <1>: 50% at 6"]
