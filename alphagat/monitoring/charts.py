"""Line charts as SVG. Line colours are fixed; the page that embeds a chart sets those of axes and text."""

import html
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from alphagat.monitoring.catalogue import compact

AXES = {"iteration": "iterations", "frames": "frames", "hours": "hours of training"}  # axis titles
AXIS_CLASSES = {"iteration": "iterations", "frames": "frames", "hours": "hours"}  # CSS classes of their drawings
# Legible on white and on black.
COLOURS = (
    *("#2a8fd8", "#d9792b", "#3ba366", "#b867c9", "#c9a227", "#d65a6b"),
    *("#17a2a2", "#a0694a", "#e377b5", "#6f74dc", "#879a2f", "#8b8f98"),
)
DASHES = {"solid": "", "dashed": "7 4", "dotted": "1 4"}  # by the style of a line, in pixels

WIDTH, HEIGHT = 380, 200
LEFT, RIGHT, TOP, BOTTOM = 46, 370, 12, 176  # edges of the plot area, in pixels
LINE = 11  # pixels between labels
HALF_CHARACTER = 3.2  # half the width of a digit, in pixels
MAX_POINTS = 240  # per curve; longer curves are averaged over equal intervals
MAX_MARKED = 40  # longer curves are drawn without dots; without intervals, they are drawn pale below their average
SMOOTHING = 0.03  # the average falls off by half over this share of the points
MAX_STEPS = 5  # between the ticks of an axis


class Curve(NamedTuple):
    """One line of a chart.

    Attributes:
      label: label among the curves of the chart.
      places: `[N]` on the x axis, ascending.
      values: `[N]`.
      low: `[N]` lower ends of the intervals; equal to the values without intervals.
      high: `[N]` upper ends.
      levels: values of horizontal lines by label, dashed in the curve's colour.
    """

    label: str
    places: np.ndarray
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    levels: Mapping[str, float] = MappingProxyType({})


class Stroke(NamedTuple):
    """How a line is drawn: its colour, and its style, a key of `DASHES`."""

    colour: str
    style: str = "solid"

    @property
    def attributes(self) -> str:
        """The attributes of an SVG shape that is drawn so."""
        dashes = DASHES[self.style]
        return f'stroke="{self.colour}"' + (f' stroke-dasharray="{dashes}"' if dashes else "")


def stroke_of(number: int) -> Stroke:
    """Returns the stroke of line `number`: every colour once for each style, then from the start again."""
    return Stroke(COLOURS[number % len(COLOURS)], list(DASHES)[number // len(COLOURS) % len(DASHES)])


def tick_text(value: float) -> str:
    """Formats a tick label: 0.05, 1,500, 20 k, 1.25 M."""
    if abs(float(f"{value:.4g}")) < 1e4:
        return f"{value:z,.4g}"
    number, unit = compact(value).split()
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"


def draw_chart(
    title: str,
    curves: Sequence[Curve],
    axis: str,
    end: float,
    text: Callable[[float], str],
    shares: bool,
    strokes: Mapping[str, Stroke] = MappingProxyType({}),
) -> str:
    """Returns one SVG element with the curves, which have at least one point in total.

    Args:
      title: begins the name of the chart that screen readers read.
      axis: label of the x axis and CSS class of the chart.
      end: end of the x axis, which starts at 0; equal for all charts of a run, so that they are comparable.
      text: formats the values of the y axis.
      shares: whether the y axis spans 0 to 1.
      strokes: of curves by label; the others have those of their numbers.
    """
    strokes = {each.label: stroke_of(number) for number, each in enumerate(curves)} | dict(strokes)
    curves = [_shorten(each) for each in curves if len(each.places)]
    x_ticks, x_of = _scale([np.array([0.0, end])], LEFT, RIGHT, axis != "hours", False)
    every = [array for each in curves for array in (each.low, each.high, np.array(list(each.levels.values()), float))]
    every = [each for each in every if each.size]
    y_ticks, y_of = _scale([np.array([0.0, 1.0])] if shares else every, BOTTOM, TOP, False, True)
    shapes = [
        f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y_of(tick):.1f}" y2="{y_of(tick):.1f}"/>' for tick in y_ticks
    ]
    shapes += [
        f'<text x="{LEFT - 6}" y="{y_of(tick) + 3.5:.1f}" text-anchor="end">{text(tick)}</text>' for tick in y_ticks
    ]
    shapes += [_label_below(x_of(tick), tick_text(tick)) for tick in x_ticks]
    shapes += _draw_levels([(curve, strokes[curve.label].colour) for curve in curves], y_of)
    for curve in curves:
        shapes += _draw_curve(curve, strokes[curve.label], x_of, y_of, text)
    labels = ", ".join(each.label for each in curves if each.label)
    name = html.escape(f"{title}{': ' if labels else ''}{labels} over {axis}")
    return f'<svg class="{axis}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">{"".join(shapes)}</svg>'


def _label_below(x: float, text: str) -> str:
    """Centres a label of the x axis at `x`, or as near as it fits into the drawing."""
    x = min(x, WIDTH - HALF_CHARACTER * len(text))
    return f'<text x="{x:.1f}" y="{BOTTOM + 17}" text-anchor="middle">{text}</text>'


def _scale(
    arrays: Sequence[np.ndarray], start: float, end: float, integer: bool, whole: bool
) -> tuple[list[float], Callable[[float], float]]:
    """Returns ticks and the map from values to pixels. With `whole`, the axis ends at ticks."""
    low, high = float(min(each.min() for each in arrays)), float(max(each.max() for each in arrays))
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # equal up to rounding
        low, high = low - (abs(low) * 0.1 or 1), high + (abs(high) * 0.1 or 1)
    ticks = _ticks(low, high, integer)
    if whole:
        low, high = float(ticks[0]), float(ticks[-1])
    slack = 1e-9 * (high - low)
    inside = [float(tick) for tick in ticks if low - slack <= tick <= high + slack]
    return inside, lambda value: start + (value - low) / (high - low) * (end - start)


def _ticks(low: float, high: float, integer: bool) -> np.ndarray:
    """Returns evenly spaced round numbers that cover `low` to `high`, at most `MAX_STEPS` steps."""
    magnitude = 10.0 ** math.floor(math.log10((high - low) / MAX_STEPS))
    for factor in (1, 2, 2.5, 5, 10, 20, 25, 50):
        step = factor * magnitude
        if integer and not float(step).is_integer():
            continue
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if last - first <= MAX_STEPS:
            return step * np.arange(first, last + 1)
    return np.array([math.floor(low), math.ceil(high)], float)


def _shorten(curve: Curve) -> Curve:
    """Averages a long curve over intervals of equal length, so that its noise is uniform."""
    length = -(-len(curve.places) // MAX_POINTS)
    starts = np.arange(0, len(curve.places), length)
    sizes = np.diff(np.append(starts, len(curve.places)))
    places, values, low, high = (
        np.add.reduceat(each, starts) / sizes for each in (curve.places, curve.values, curve.low, curve.high)
    )
    return Curve(curve.label, places, values, low, high, curve.levels)


def smooth(values: np.ndarray, half_life: float) -> np.ndarray:
    """Returns the mean of all values up to each one, with weights that halve every `half_life` values."""
    decay, total, weight = 0.5 ** (1 / half_life), 0.0, 0.0
    means = []
    for value in values:
        total, weight = decay * total + value, decay * weight + 1
        means.append(total / weight)
    return np.array(means)


def _draw_levels(curves: Sequence[tuple[Curve, str]], y_of: Callable) -> list[str]:
    """Draws the levels of curves and their colours. Labels stand above their lines, or higher where others stand."""
    levels = [(y_of(value), label, colour) for curve, colour in curves for label, value in curve.levels.items()]
    shapes = [
        f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}" stroke-dasharray="5 3"/>'
        for y, _, colour in levels
    ]
    # Boards may share a level, such as the anchor's; the last line covers the others.
    labels = {(round(y, 1), label): colour for y, label, colour in levels}
    placed = sorted(labels.items(), reverse=True)
    for ((_, label), colour), y in zip(placed, spread([y - 3 for (y, _), _ in placed], LINE, TOP)):
        shapes.append(
            f'<text x="{RIGHT}" y="{y:.1f}" text-anchor="end" style="fill:{colour}">{html.escape(label)}</text>'
        )
    return shapes


def spread(heights: Sequence[float], gap: float, top: float) -> list[float]:
    """Moves labels, given from the lowest up, at least `gap` apart: upwards, and down again where they would leave the
    drawing at `top`.
    """
    moved: list[float] = []
    for height in heights:
        moved.append(min(height, moved[-1] - gap) if moved else height)
    return [max(height, top + gap * rank) for rank, height in zip(range(len(moved) - 1, -1, -1), moved)]


def _draw_curve(curve: Curve, stroke: Stroke, x_of: Callable, y_of: Callable, text: Callable) -> list[str]:
    points = [f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in zip(curve.places, curve.values)]
    shapes, colour = [], stroke.colour
    title = f"<title>{html.escape(curve.label)}</title>" if curve.label else ""
    if (curve.low < curve.high).any():
        upper = [f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in zip(curve.places, curve.high)]
        lower = [f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in zip(curve.places, curve.low)]
        if len(points) > 1:
            shapes.append(f'<polygon points="{" ".join(upper + lower[::-1])}" fill="{colour}" fill-opacity=".18"/>')
        else:
            shapes.append(
                f'<polyline class="curve" points="{upper[0]} {lower[0]}" stroke="{colour}" stroke-opacity=".5"/>'
            )
    is_noisy = len(points) > MAX_MARKED and not (curve.low < curve.high).any()
    if len(points) > 1:
        look = f'stroke="{colour}" stroke-opacity=".28"' if is_noisy else stroke.attributes
        shapes.append(f'<polyline class="curve" points="{" ".join(points)}" {look}>{title}</polyline>')
    if is_noisy:
        average = smooth(curve.values, SMOOTHING * len(points))
        smoothed = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in zip(curve.places, average))
        shapes.append(f'<polyline class="curve" points="{smoothed}" {stroke.attributes}>{title}</polyline>')
    if len(points) <= MAX_MARKED:
        for x, y in zip(curve.places, curve.values):
            tip = html.escape(f"{curve.label}: {text(y)} at {tick_text(x)}".removeprefix(": "))
            shapes.append(
                f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="2.6" fill="{colour}"><title>{tip}</title></circle>'
            )
    return shapes
