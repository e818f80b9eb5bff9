"""Metrics as short text and drawings for the display."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rich.text import Text

from alphagat.monitoring.catalogue import RESULTS, Metric
from alphagat.runs.metrics import Result

SPARK = "▁▂▃▄▅▆▇█"
SCALE_COLUMNS = 24  # width of the scale of a score

Scalars = Mapping[str, float]


class ResultText(NamedTuple):
    """A result and its text; `interval` is empty without one."""

    label: str
    value: str
    interval: str
    result: Result

    @property
    def value_and_interval(self) -> str:
        return f"{self.value} {self.interval}".rstrip()


def describe_results(results: Iterable[Result], boards: Sequence[str]) -> list[ResultText]:
    """Describes the finite results that are in the catalogue, in catalogue order.

    Args:
      results: results of one evaluation.
      boards: boards of the run; with several, labels name the board.
    """
    finite = [each for each in results if math.isfinite(each.value)]
    return [
        _describe(metric, each, len(boards) > 1) for metric in RESULTS for each in finite if each.name == metric.name
    ]


def _describe(metric: Metric, result: Result, name_board: bool) -> ResultText:
    label = metric.label.format(opponent=result.opponent)
    low, high = interval(result)
    ends = f"({metric.text(low)} to {metric.text(high)})" if low < high else ""
    return ResultText(f"{result.board} {label}" if name_board else label, metric.text(result.value), ends, result)


def interval(result: Result) -> tuple[float, float]:
    """Returns the ends of a result's interval; both equal its value without an interval."""
    low = result.value if result.low is None else result.low
    return low, result.value if result.high is None else result.high


def scalar_rows(metrics: Scalars, catalogue: Iterable[Metric]) -> list[tuple[str, str]]:
    """Returns (label, value) of each metric that has a label and a value."""
    return [(each.label, each.text(metrics[each.name])) for each in catalogue if each.label and each.name in metrics]


def duration(seconds: float) -> str:
    """Formats a duration: 42 s, 3 min 05 s, 2 h 07 min."""
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    hours, minutes_rest = divmod(minutes, 60)
    return f"{hours} h {minutes_rest:02} min" if hours else f"{minutes} min {rest:02} s"


def sparkline(values: list[float], columns: int) -> str:
    """Draws values as blocks scaled from lowest to highest; averages equal intervals if there are many."""
    if len(values) < 2:
        return ""
    columns = min(columns, len(values))
    bounds = [round(i * len(values) / columns) for i in range(columns + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(bounds)]
    low, span = min(means), max(means) - min(means)
    return "".join(SPARK[round((mean - low) / span * (len(SPARK) - 1))] if span > 0 else SPARK[0] for mean in means)


def score_scale(score: float, low: float, high: float) -> Text:
    """Draws a score and its interval on a scale from 0 to 1 with a marked middle."""

    def column(value: float) -> int:
        return round(min(max(value, 0.0), 1.0) * SCALE_COLUMNS)

    scale = Text()
    for place in range(SCALE_COLUMNS + 1):
        if place == column(score):
            scale.append("●", "bold green" if low > 0.5 else "bold red" if high < 0.5 else "bold yellow")
        elif column(low) <= place <= column(high):
            scale.append("━")
        else:
            scale.append("┼" if place == SCALE_COLUMNS // 2 else "─", "dim")
    return scale
