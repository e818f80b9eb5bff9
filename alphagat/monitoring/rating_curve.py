"""The rating curve of a run: rated players as a table, and as an SVG file."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table

from alphagat.evaluation.ratings import Rating
from alphagat.monitoring.charts import AXES, AXIS_CLASSES, HEIGHT, WIDTH, Curve, draw_chart, stroke_of, tick_text
from alphagat.runs.atomic_files import write_atomically
from alphagat.runs.metrics import Line

PREFIX = "iteration "
HEADER, FOOTER = 52, 22  # pixels above and below the panels
STYLE = """
text { fill: #808080; font: 11px sans-serif; }
.title { font-size: 14px; text-anchor: middle; }
.grid { stroke: #808080; stroke-opacity: .3; }
.curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
"""  # this grey is legible on white and on black


class Rated(NamedTuple):
    """A player and its rating.

    Attributes:
      name: name in the matches; `iteration 40` for a network of the run.
      iteration: iteration of the network; None for other players.
      frames: positions played up to that iteration; None if unknown.
      hours: training time of the network; None if unknown.
      elo: rating relative to the anchor, in Elo.
      low: lower end of the 95% interval.
      high: upper end.
    """

    name: str
    iteration: int | None
    frames: float | None
    hours: float | None
    elo: float
    low: float
    high: float


def player_name(iteration: float) -> str:
    """Returns the name in matches of the network of an iteration."""
    return f"{PREFIX}{int(iteration)}"


def rated_players(ratings: Mapping[str, Rating], lines: Sequence[Line]) -> list[Rated]:
    """Returns the players that are not networks of the run, by rating, then its networks, by iteration.

    Args:
      ratings: by name of the player.
      lines: lines of `metrics.jsonl`, for frames and hours.
    """
    first = {"hours": 0.0} | ({"frames": 0.0} if any("frames" in line for line in lines) else {})
    known = {line["iteration"]: line for line in lines} | {0: first}
    found = []
    for name, rating in ratings.items():
        number = name.removeprefix(PREFIX)
        iteration = int(number) if name.startswith(PREFIX) and number.isdecimal() else None
        line = known.get(iteration, {}) if iteration is not None else {}
        place = iteration, line.get("frames"), line.get("hours")
        found.append(Rated(name, *place, rating.elo, rating.low, rating.high))
    return sorted(found, key=lambda each: (0, each.elo) if each.iteration is None else (1, each.iteration))


def table(title: str, players: Sequence[Rated]) -> Table:
    """Returns a table with one player per row."""
    found = Table(title=title)
    found.add_column("player")
    for name in ("frames", "hours", "Elo", "95% interval"):
        found.add_column(name, justify="right")
    for each in players:
        found.add_row(
            each.name,
            "" if each.frames is None else f"{each.frames:,.0f}",
            "" if each.hours is None else f"{each.hours:.2f}",
            f"{each.elo:z,.0f}",
            f"{each.low:z,.0f} to {each.high:z,.0f}",
        )
    return found


def draw(file: Path, curves: Mapping[str, Sequence[Rated]], title: str) -> None:
    """Writes the curves of all boards as an SVG file, over iterations, frames and hours where known.

    Players other than networks of the run are dashed lines.
    """
    panels = []
    for axis, counted in AXES.items():
        drawn = [_curve(board, players, axis) for board, players in curves.items()]
        places = [place for curve in drawn for place in curve.places]
        if places:
            chart = draw_chart("Elo", drawn, AXIS_CLASSES[axis], max(places), tick_text, False)
            x = len(panels) * WIDTH
            panels.append(
                f'<g transform="translate({x} {HEADER})">{_sized(chart)}'
                f'<text x="{WIDTH / 2}" y="{HEIGHT + 8}" text-anchor="middle">{counted}</text></g>'
            )
    legend = _legend(list(curves)) if len(curves) > 1 else ""
    width, height = max(len(panels), 1) * WIDTH, HEADER + HEIGHT + FOOTER
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<style>{STYLE}</style><text class="title" x="{width / 2}" y="20">{html.escape(title)}</text>'
        f'<text x="8" y="{HEADER}">Elo</text>{legend}{"".join(panels)}</svg>\n'
    )
    write_atomically(file, text)


def _curve(board: str, players: Sequence[Rated], axis: str) -> Curve:
    known = [each for each in players if each.iteration is not None and getattr(each, axis) is not None]
    places, elo, low, high = (
        np.array([getattr(each, name) for each in known], float) for name in (axis, "elo", "low", "high")
    )
    others = {each.name: each.elo for each in players if each.iteration is None}
    return Curve(board, places, elo, low, high, others)


def _legend(boards: Sequence[str]) -> str:
    words = (
        f'<tspan dx="12" style="fill:{stroke_of(number).colour}">{html.escape(board)}</tspan>'
        for number, board in enumerate(boards)
    )
    return f'<text x="34" y="{HEADER - 12}">{"".join(words)}</text>'


def _sized(chart: str) -> str:
    """Sets the size of a chart in pixels; in the report, the style sheet sets it."""
    return chart.replace("<svg ", f'<svg width="{WIDTH}" height="{HEIGHT}" ', 1)
