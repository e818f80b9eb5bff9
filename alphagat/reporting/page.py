"""The page of a report: one self-contained HTML file."""

import dataclasses
import html
import json
import string
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from alphagat import config_fields
from alphagat.config import Config
from alphagat.games import svg
from alphagat.games.base import Game
from alphagat.monitoring.catalogue import compact
from alphagat.monitoring.metric_text import describe_results, duration
from alphagat.reporting import curves
from alphagat.runs.metrics import RESULTS, Line, last_evaluation, last_value

FOLDER = Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Contents:
    """The contents of a page.

    Attributes:
      name: the run's name.
      config: the run's config.
      lines: the lines of `metrics.jsonl`.
      starts: the entries of `env.json`, oldest first.
      pictures: sample games and attention as HTML, or why there are none.
      colours: the colours of the two players.
      refresh: seconds after which a browser reloads the page; None: never.
    """

    name: str
    config: Config
    lines: Sequence[Line]
    starts: Sequence[Mapping[str, Any]]
    pictures: str
    colours: tuple[str, str]
    refresh: float | None = None


def make_page(contents: Contents) -> str:
    """Returns the page."""
    config, lines = contents.config, contents.lines
    charts = "".join(curves.to_html(curves.draw(chart, lines)) for chart in curves.charts_of(lines, config.boards))
    sections = [
        contents.pictures,
        section("Config", "Fields that differ from the defaults.", _config(config)),
        section("Machines", "", _starts(contents.starts)),
    ]
    return fill_template(
        title=html.escape(f"{contents.name}: {', '.join(config.boards)}"),
        over=html.escape(", ".join(config.boards)),
        name=html.escape(contents.name),
        progress=_progress(config, lines),
        tiles="".join(_tile(each) for each in tiles_of(config.boards, lines)),
        charts=charts,
        sections="".join(sections),
        colours=contents.colours,
        refresh=contents.refresh,
    )


def has_ended(config: Config, lines: Sequence[Line], steps: Sequence[int]) -> bool:
    """Returns whether the last iteration of a run is logged, evaluated and checkpointed."""
    if not lines or (config.evaluation.every and RESULTS not in lines[-1]):
        return False
    end = config.num_iterations
    return lines[-1]["iteration"] >= end and max(steps, default=0) >= end


def colours_of(game: Game) -> tuple[str, str]:
    """Returns the colours of a game's players; that of the panel for a missing one."""
    first, *second = (colour for _, colour in game.player_colours)
    return first, second[0] if second else svg.PANEL


def fill_template(charts: str, colours: tuple[str, str], refresh: float | None, **parts: str) -> str:
    """Returns a page. `parts` are the other variables of the template, as HTML."""
    return string.Template((FOLDER / "page.html").read_text("utf-8")).substitute(
        charts=charts or "<p>No iteration has been written yet.</p>",
        axes="".join(_axis(name) for name in curves.AXIS_CLASSES.values() if f'<svg class="{name}"' in charts),
        refresh=f'<meta http-equiv="refresh" content="{refresh:g}">' if refresh else "",
        style=(FOLDER / "page.css").read_text("utf-8"),
        colours=f"--first:{colours[0]};--second:{colours[1]}",
        written=time.strftime("%Y-%m-%d %H:%M:%S"),
        **parts,
    )


def _axis(name: str) -> str:
    checked = " checked" if name == curves.AXIS_CLASSES["iteration"] else ""
    return f'<label><input type="radio" name="axis" id="{name}"{checked}><span>{name}</span></label>'


def section(title: str, note: str, inside: str) -> str:
    """Returns a section; `inside` is HTML."""
    return f"<section><h2>{title}</h2>{f'<p>{html.escape(note)}</p>' if note else ''}{inside}</section>"


def _progress(config: Config, lines: Sequence[Line]) -> str:
    done, end = lines[-1]["iteration"] if lines else 0, config.num_iterations
    text = f"iteration {done:,} of {end:,} <progress max={end} value={done}></progress>"
    evaluation = last_evaluation(lines)
    return f"{text} evaluated after iteration {evaluation['iteration']:,}" if evaluation else text


class Tile(NamedTuple):
    """One of the figures at the top: its label, its value, and the interval of the value or nothing."""

    label: str
    value: str
    interval: str = ""


def tiles_of(boards: Sequence[str], lines: Sequence[Line]) -> list[Tile]:
    """Returns the frames, the time of training, and the results of the last evaluation.

    Args:
      boards: with several, the labels of results name the board.
    """
    frames, hours, evaluation = last_value(lines, "frames"), last_value(lines, "hours"), last_evaluation(lines)
    tiles = [] if frames is None else [Tile("frames", compact(frames))]
    tiles += [] if hours is None else [Tile("training", duration(3600 * hours))]
    results = evaluation[RESULTS] if evaluation else []
    return tiles + [Tile(each.label, each.value, each.interval) for each in describe_results(results, boards)]


def _tile(tile: Tile) -> str:
    label, value, more = map(html.escape, tile)
    return f"<div><dt>{label}</dt><dd>{value}<small>{more}</small></dd></div>"


def _config(config: Config) -> str:
    changes = config_fields.changes(config)
    changed = [(field.path, cell_text(field.value), cell_text(default)) for field, default in changes]
    every = [(each.path, cell_text(each.value), each.help) for each in config_fields.fields(config)]
    first = table(("field", "value", "default"), changed) if changed else "<p>Every field has its default.</p>"
    return f"{first}<details><summary>All fields</summary>{table(('field', 'value', ''), every)}</details>"


def _starts(starts: Sequence[Mapping[str, Any]]) -> str:
    return "".join(
        f"<details{' open' if number == len(starts) else ''}><summary>Start {number}: "
        f"{html.escape(str(start.get('started', 'at an unknown time')))}</summary>"
        f"{table(('', ''), [(name, _described(name, value)) for name, value in start.items()])}</details>"
        for number, start in enumerate(starts, 1)
    )


def _described(name: str, value: Any) -> str:
    if name == "devices" and isinstance(value, list):
        return ", ".join(f"{value.count(kind)} × {kind}" for kind in dict.fromkeys(value))
    if name == "argv" and isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    return cell_text(value)


def cell_text(value: Any) -> str:
    """Formats a value for a cell of a table."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table of texts; an empty head is left out."""
    body = "".join(_row("td", row) for row in rows)
    return f"<div class=scroll><table>{_row('th', head) if any(head) else ''}{body}</table></div>"


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(each)}</{tag}>' for each in cells)}</tr>"
