"""Charts of a run, from the catalogue of metrics."""

import html
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from alphagat.monitoring import catalogue
from alphagat.monitoring.catalogue import Metric
from alphagat.monitoring.charts import AXES, AXIS_CLASSES, COLOURS, Curve, draw_chart, percent_text, tick_text
from alphagat.monitoring.metric_text import interval
from alphagat.runs.metrics import RESULTS, Line, Result

Point = tuple[Line, Result]  # the line holds its position on every axis


class Chart(NamedTuple):
    """One chart.

    Attributes:
      title: over the chart.
      curves: points by the label of their curve, oldest first.
      is_share: all values lie in [0, 1].
    """

    title: str
    curves: Mapping[str, Sequence[Point]]
    is_share: bool = False


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
        Result(each.name, line["board"], line[each.name])
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


def draw(chart: Chart, lines: Sequence[Line]) -> str:
    """Returns a figure with a title, the latest values as the legend, and one drawing for each x axis."""
    text = percent_text if chart.is_share else tick_text
    drawings = []
    for axis in AXES:
        curves = [_curve(axis, label, points) for label, points in chart.curves.items()]
        if any(len(each.places) for each in curves):
            drawings.append(draw_chart(curves, AXIS_CLASSES[axis], _end(lines, axis), text, chart.is_share))
    legend = "".join(
        _legend(label, points[-1][1].value, COLOURS[number % len(COLOURS)], text)
        for number, (label, points) in enumerate(chart.curves.items())
    )
    title = html.escape(chart.title)
    return (
        f'<figure><figcaption><h3>{title}</h3><p class="legend">{legend}</p></figcaption>{"".join(drawings)}</figure>'
    )


def _curve(axis: str, label: str, points: Sequence[Point]) -> Curve:
    placed = [(line[axis], result) for line, result in points if line.get(axis) is not None]
    rows = np.array([(place, result.value, *interval(result)) for place, result in placed], float).reshape(-1, 4)
    places, values, low, high = rows.T
    return Curve(label, places, values, low, high)


def _end(lines: Sequence[Line], axis: str) -> float:
    return max(each[axis] for each in lines if each.get(axis) is not None)


def _legend(label: str, value: float, colour: str, text: Callable[[float], str]) -> str:
    return f'<span style="--colour:{colour}">{html.escape(label)} <b>{text(value)}</b></span>'
