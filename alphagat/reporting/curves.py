"""Which metrics of a run stand in which chart."""

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from alphagat.monitoring.metric_text import auxiliary_losses, ratings, scores
from alphagat.monitoring.rating_curve import AXES, COLOURS
from alphagat.reporting.charts import Curve, draw_chart, percent_text, tick_text

Line = Mapping[str, Any]
# Title of a chart, and its metrics by what they are called there; with several boards each has its own.
LOSSES = (
    ("Policy loss", {"": "train/policy_loss"}),
    ("Value loss", {"": "train/value_loss"}),
)
LEARNING = (
    ("Entropy of the policy", {"network": "train/policy_entropy", "search": "selfplay/target_entropy"}),
    ("Gradient norm", {"": "train/grad_norm"}),
    ("Plies per game", {"": "selfplay/game_length"}),
    ("Simulations per second", {"": "selfplay/simulations_per_s"}),
)
ORACLE = {"network": "eval/oracle/best_move", "search": "eval/oracle/best_move_search"}
HELD_OUT = {"moves named first": "holdout/policy_accuracy", "winners named": "holdout/value_sign"}


class Chart(NamedTuple):
    """What is drawn together.

    Attributes:
      title: over the chart.
      metrics: their names in `metrics.jsonl`, each under its label; `_low` and `_high` behind are its interval.
      shares: all values lie in [0, 1].
    """

    title: str
    metrics: dict[str, str]
    shares: bool = False


def charts_of(lines: Sequence[Line], boards: Sequence[str]) -> list[Chart]:
    """Returns the charts for which the lines of `metrics.jsonl` have values: strength first, then learning."""
    known = {name: 0.0 for line in lines for name, value in line.items() if value is not None}
    found = [Chart("Elo", {label.removesuffix("Elo").strip(): name for label, name in ratings(known).items()})]
    against = scores(known)
    for prefix in [f"{board} " for board in boards] if len(boards) > 1 else [""]:
        here = {label.removeprefix(prefix): name for label, name in against.items() if label.startswith(prefix)}
        found.append(Chart(_titled("Score against", prefix.strip()), here, shares=True))
    found += _by_board("Points per game", {"": "eval/score"}, boards)
    found += _by_board("Best moves", ORACLE, boards, shares=True)
    found += _by_board("Recorded games that were held out", HELD_OUT, boards, shares=True)
    auxiliary = [(label.capitalize(), {"": name}) for label, name in auxiliary_losses(known).items()]
    for title, metrics in (*LOSSES, *auxiliary, *LEARNING):
        found += _by_board(title, metrics, boards)
    found = [each._replace(metrics={label: m for label, m in each.metrics.items() if m in known}) for each in found]
    return [each for each in found if each.metrics]


def _by_board(title: str, metrics: Mapping[str, str], boards: Sequence[str], shares: bool = False) -> list[Chart]:
    """Returns the charts of metrics that each board of a run has: one where each has one curve, else one per board."""
    if len(boards) == 1:
        return [Chart(title, dict(metrics), shares)]
    named = {board: {label: _named(name, board) for label, name in metrics.items()} for board in boards}
    if len(metrics) == 1:
        return [Chart(title, {board: name for board, found in named.items() for name in found.values()}, shares)]
    return [Chart(_titled(title, board), found, shares) for board, found in named.items()]


def _named(name: str, board: str) -> str:
    """Names a metric as a run on several boards does: `train/hex:7/policy_loss`."""
    section, _, rest = name.partition("/")
    return f"{section}/{board}/{rest}"


def _titled(title: str, board: str) -> str:
    return f"{title}, {board}" if board else title


def draw(chart: Chart, lines: Sequence[Line]) -> str:
    """Returns a figure with a title, the latest values as the legend, and one drawing for each x axis."""
    text = percent_text if chart.shares else tick_text
    drawings = []
    for axis in AXES:
        curves = [_curve(lines, axis, label, name) for label, name in chart.metrics.items()]
        if any(len(each.places) for each in curves):
            drawings.append(draw_chart(curves, AXIS_CLASSES[axis], _end(lines, axis), text, chart.shares))
    legend = "".join(
        _legend(lines, *item, COLOURS[i % len(COLOURS)], text) for i, item in enumerate(chart.metrics.items())
    )
    title = html.escape(chart.title)
    return (
        f'<figure><figcaption><h3>{title}</h3><p class="legend">{legend}</p></figcaption>{"".join(drawings)}</figure>'
    )


AXIS_CLASSES = {name: name + "s" if name == "iteration" else name for name in AXES}


def _curve(lines: Sequence[Line], axis: str, label: str, name: str) -> Curve:
    here = [each for each in lines if each.get(name) is not None and each.get(axis) is not None]
    values = [each[name] for each in here]
    ends = [[_or(each.get(name + end), each[name]) for each in here] for end in ("_low", "_high")]
    return Curve(label, *(np.array(each, float) for each in ([line[axis] for line in here], values, *ends)))


def _end(lines: Sequence[Line], axis: str) -> float:
    return max(each[axis] for each in lines if each.get(axis) is not None)


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _legend(lines: Sequence[Line], label: str, name: str, colour: str, text: Callable[[float], str]) -> str:
    last = next(each[name] for each in reversed(lines) if each.get(name) is not None)
    return f'<span style="--colour:{colour}">{html.escape(label)} <b>{text(last)}</b></span>'
