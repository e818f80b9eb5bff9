"""Compares several runs on one page: a curve per run, and the fields in which they differ."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from alphagat import config_fields
from alphagat.config import Config
from alphagat.games import make_game
from alphagat.monitoring import catalogue
from alphagat.monitoring.charts import stroke_of
from alphagat.monitoring.metric_text import describe_results
from alphagat.reporting import curves
from alphagat.reporting.curves import Chart, Entry, Point
from alphagat.reporting.page import cell_text, colours_of, fill_template, has_ended, section, table, tiles_of
from alphagat.runs.atomic_files import write_atomically
from alphagat.runs.folder import read_config
from alphagat.runs.metrics import ELO, Line, Result, last_evaluation, read_metrics
from alphagat.runs.saved_checkpoints import list_steps


class ComparedRun(NamedTuple):
    """One of the runs: its name on the page, its config and the lines of its `metrics.jsonl`."""

    name: str
    config: Config
    lines: Sequence[Line]


class ComparisonWriter:
    """Writes the comparison of several runs, and updates it."""

    def __init__(self, folders: Sequence[Path], file: Path):
        """Reads the runs. Raises UserError if a folder holds none."""
        self._folders, self._file = folders, file
        for folder in folders:
            read_config(folder)

    def write(self, refresh: float | None = None) -> bool:
        """Writes the page, and returns whether all runs have ended.

        Args:
          refresh: seconds after which a browser reloads the page while a run is in progress; None: never.
        """
        runs = [
            ComparedRun(name, read_config(folder), read_metrics(folder))
            for name, folder in zip(names_of(self._folders), self._folders)
        ]
        ended = all(has_ended(run.config, run.lines, list_steps(folder)) for run, folder in zip(runs, self._folders))
        write_atomically(self._file, make_comparison(runs, None if ended else refresh))
        return ended


def names_of(folders: Sequence[Path]) -> list[str]:
    """Returns short names: those of the folders, or the whole paths if two folders have the same name."""
    short = [folder.resolve().name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder) for folder in folders]


def make_comparison(runs: Sequence[ComparedRun], refresh: float | None = None) -> str:
    """Returns the page."""
    boards = list(dict.fromkeys(board for run in runs for board in run.config.boards))
    charts = "".join(_draw(chart, runs) for chart in charts_of(runs, boards))
    legend = [Entry(run.name, "", *stroke_of(number)) for number, run in enumerate(runs)]
    differences = table(("field", *(run.name for run in runs)), differing_fields(runs))
    title = html.escape(", ".join(run.name for run in runs))
    return fill_template(
        title=title,
        over=html.escape(", ".join(boards)),
        name=f"{len(runs)} runs",
        progress=curves.to_legend(legend, "legend"),
        tiles="",
        charts=charts,
        sections=section("Results", "After the last iteration, or the last evaluation.", _results(runs, boards))
        + section("Config", "Fields in which the runs differ.", differences),
        colours=colours_of(make_game(boards[0])),
        refresh=refresh,
    )


def _draw(chart: Chart, runs: Sequence[ComparedRun]) -> str:
    """Draws a chart whose x axis ends with the longest of its runs."""
    lines = [line for run in runs if run.name in chart.curves for line in run.lines]
    return curves.to_html(curves.draw(chart, lines))


def charts_of(runs: Sequence[ComparedRun], boards: Sequence[str]) -> list[Chart]:
    """Returns a chart for each curve of the report of a run, with one curve per run."""
    by_run = {run.name: curves.charts_of(run.lines, boards) for run in runs}
    titles = list(dict.fromkeys(chart.title for charts in by_run.values() for chart in charts))
    order = list(catalogue.charts())
    titles.sort(key=lambda title: order.index(title.partition(", ")[0]))
    made = []
    for title in titles:
        found = {name: chart for name, charts in by_run.items() for chart in charts if chart.title == title}
        labels = dict.fromkeys(label for chart in found.values() for label in chart.curves)
        for label in labels:
            points: Mapping[str, Sequence[Point]] = {
                name: chart.curves[label] for name, chart in found.items() if label in chart.curves
            }
            is_share = next(iter(found.values())).is_share
            made.append(Chart(f"{title}: {label}" if label else title, points, is_share, list(by_run)))
    return made


def differing_fields(runs: Sequence[ComparedRun]) -> list[list[str]]:
    """Returns a row for each field that differs: its path, and its value in each run."""
    columns = [{each.path: cell_text(each.value) for each in config_fields.fields(run.config)} for run in runs]
    rows = [[path, *(column.get(path, "") for column in columns)] for path in columns[0]]
    return [row for row in rows if len(set(row[1:])) > 1]


def _results(runs: Sequence[ComparedRun], boards: Sequence[str]) -> str:
    """Returns the table of results; with several `boards` in all runs together, its columns name them."""
    tiles = [
        {tile.label: f"{tile.value} {tile.interval}".strip() for tile in tiles_of(boards, run.lines)} for run in runs
    ]
    labels = list(dict.fromkeys(label for each in tiles for label in each))
    rows = []
    for run, found in zip(runs, tiles):
        iteration = f"{run.lines[-1]['iteration'] if run.lines else 0:,} of {run.config.num_iterations:,}"
        texts = _reasons(run, boards) | found
        rows.append([run.name, iteration, *(texts.get(label, "") for label in labels)])
    return table(("run", "iteration", *labels), rows)


def _reasons(run: ComparedRun, boards: Sequence[str]) -> dict[str, str]:
    """Returns the text to show where a rating is missing, by the label of the rating in a table of `boards`."""
    unrated = describe_results([Result(ELO, board, 0.0) for board in run.config.boards], boards)
    return {each.label: _why_unrated(run, each.result.board) for each in unrated}


def _why_unrated(run: ComparedRun, board: str) -> str:
    if make_game(board).num_players == 1:
        return "none: one player"
    if not run.config.evaluation.every:
        return "none: no evaluations"
    if not run.config.evaluation.opponents:
        return "none: no opponents"
    if last_evaluation(run.lines) is None:
        return "not evaluated yet"
    return "none: no rated opponent"
