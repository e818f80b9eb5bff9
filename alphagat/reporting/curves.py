"""Charts of a run, from the catalogue of metrics."""

import html
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from alphagat.monitoring import catalogue
from alphagat.monitoring.catalogue import Metric
from alphagat.monitoring.charts import AXIS_CLASSES, Curve, Stroke, draw_chart, stroke_of, tick_text
from alphagat.monitoring.metric_text import interval
from alphagat.runs.metrics import RESULTS, Line, Result, board_of

MAX_ENTRIES = 6  # of a legend in a small chart; a longer one appears when the chart is enlarged
Point = tuple[Line, Result]  # the line holds its position on every axis


class Chart(NamedTuple):
    """One chart.

    Attributes:
      title: over the chart.
      curves: points by the label of their curve, oldest first.
      is_share: all values lie in [0, 1].
      names: labels whose order decides the strokes, which other charts may share; empty: those of the curves.
    """

    title: str
    curves: Mapping[str, Sequence[Point]]
    is_share: bool = False
    names: Sequence[str] = ()

    @property
    def strokes(self) -> dict[str, Stroke]:
        """Returns the stroke of each curve by its label."""
        names = self.names or list(self.curves)
        return {label: stroke_of(names.index(label)) for label in self.curves}


class Entry(NamedTuple):
    """One curve in a legend: its label, its latest value as text, and the colour and style of its stroke."""

    label: str
    value: str
    colour: str
    style: str


class Figure(NamedTuple):
    """A drawn chart.

    Attributes:
      title: over the chart.
      legend: an entry per curve.
      drawings: an SVG element for each x axis that has points, by the values of `AXIS_CLASSES`.
    """

    title: str
    legend: Sequence[Entry]
    drawings: Mapping[str, str]


def charts_of(lines: Sequence[Line], boards: Sequence[str]) -> list[Chart]:
    """Returns the charts for which the lines of `metrics.jsonl` have values: strength first, then learning.

    Boards share a chart if each has one curve; otherwise each board has a chart.
    """
    points: dict[tuple[str, str], list[Point]] = defaultdict(list)  # by name and board
    for line in lines:
        for result in _results(line):
            points[result.name, result.board].append((line, result))
    made = []
    for title, metrics in catalogue.charts().items():
        is_share = metrics[0].is_share
        if len(boards) > 1 and len(metrics) == 1 and not metrics[0].has_opponent:
            shared = {board: points[metrics[0].name, board] for board in boards}
            made.append(Chart(title, _without_empty(shared), is_share))
            continue
        for board in boards:
            curves = _curves(metrics, {each.name: points[each.name, board] for each in metrics})
            made.append(Chart(f"{title}, {board}" if len(boards) > 1 else title, curves, is_share))
    return [each for each in made if each.curves]


def _results(line: Line) -> list[Result]:
    """Returns the finite scalars and results of the catalogue in a line, all as results."""
    scalars = [
        Result(each.name, board_of(line, each.name), line[each.name])
        for each in (*catalogue.LEARNING, *catalogue.DATA)
        if line.get(each.name) is not None
    ]
    return [each for each in (*scalars, *line.get(RESULTS, ())) if math.isfinite(each.value)]


def _curves(metrics: Sequence[Metric], points: Mapping[str, Sequence[Point]]) -> dict[str, Sequence[Point]]:
    """Returns one curve per metric, or per opponent if the metric has opponents."""
    curves: dict[str, list[Point]] = defaultdict(list)
    for metric in metrics:
        for line, result in points[metric.name]:
            curves[result.opponent or metric.curve].append((line, result))
    return dict(curves)


def _without_empty(curves: Mapping[str, Sequence[Point]]) -> dict[str, Sequence[Point]]:
    return {label: points for label, points in curves.items() if points}


def draw(chart: Chart, lines: Sequence[Line]) -> Figure:
    """Draws a chart over each x axis."""
    text = catalogue.PERCENT if chart.is_share else tick_text
    drawings = {}
    for axis, name in AXIS_CLASSES.items():
        curves = [_curve(axis, label, points) for label, points in chart.curves.items()]
        if any(len(each.places) for each in curves):
            end = _end(lines, axis)
            drawings[name] = draw_chart(chart.title, curves, name, end, text, chart.is_share, chart.strokes)
    strokes = chart.strokes
    legend = [Entry(label, text(points[-1][1].value), *strokes[label]) for label, points in chart.curves.items()]
    return Figure(chart.title, legend, drawings)


def to_html(figure: Figure) -> str:
    """Returns the figure as an HTML element."""
    legend = to_legend(figure.legend, "legend long" if len(figure.legend) > MAX_ENTRIES else "legend")
    head = f"<h3>{html.escape(figure.title)}</h3>{legend}"
    return f'<figure tabindex="0"><figcaption>{head}</figcaption>{"".join(figure.drawings.values())}</figure>'


def to_legend(entries: Sequence[Entry], classes: str) -> str:
    """Returns a legend as an HTML element with these classes."""
    spans = "".join(
        f'<span class="{style}" style="--colour:{colour}">{html.escape(label)}{value and f" <b>{value}</b>"}</span>'
        for label, value, colour, style in entries
    )
    return f'<span class="{classes}">{spans}</span>'


def _curve(axis: str, label: str, points: Sequence[Point]) -> Curve:
    placed = [(line[axis], result) for line, result in points if line.get(axis) is not None]
    rows = np.array([(place, result.value, *interval(result)) for place, result in placed], float).reshape(-1, 4)
    places, values, low, high = rows.T
    return Curve(label, places, values, low, high)


def _end(lines: Sequence[Line], axis: str) -> float:
    return max(each[axis] for each in lines if each.get(axis) is not None)
