"""The curve of ratings over a run: the players that it rates, as a table, a file and a drawing."""

import io
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from alphagat.evaluation.ratings import Rating
from alphagat.runs.atomic_files import write_atomically

CURVE_FILE = "ratings.svg"
PREFIX = "iteration "
# Read well on white and on black.
GREY, COLOURS = "#808080", ("#2a8fd8", "#d9792b", "#3ba366", "#b867c9", "#c9a227", "#d65a6b")
AXES = {"iteration": "iterations", "frames": "frames", "hours": "hours of training"}


class Rated(NamedTuple):
    """A player and its rating.

    Attributes:
      name: as in the matches, `iteration 40` for a network of the run.
      iteration: of that network; None for every other player.
      frames: positions that it had learned from; None where not known.
      hours: time that it had trained; None where not known.
      elo: over the anchor's, with its 95% interval.
      low: the interval's lower end.
      high: its upper end.
    """

    name: str
    iteration: int | None
    frames: float | None
    hours: float | None
    elo: float
    low: float
    high: float


def player_name(iteration: float) -> str:
    """Returns what matches call the network of an iteration."""
    return f"{PREFIX}{int(iteration)}"


def rated_players(ratings: Mapping[str, Rating], lines: Sequence[Mapping[str, Any]]) -> list[Rated]:
    """Returns the players, first those that are no network of the run, by rating, then these, by iteration.

    Args:
      ratings: by the name of the player.
      lines: of `metrics.jsonl`, for frames and hours.
    """
    known = {line["iteration"]: line for line in lines} | {0: {"frames": 0.0, "hours": 0.0}}
    found = []
    for name, rating in ratings.items():
        number = name.removeprefix(PREFIX)
        iteration = int(number) if name.startswith(PREFIX) and number.isdigit() else None
        line = known.get(iteration, {}) if iteration is not None else {}
        place = iteration, line.get("frames"), line.get("hours")
        found.append(Rated(name, *place, rating.elo, rating.low, rating.high))
    return sorted(found, key=lambda each: (0, each.elo) if each.iteration is None else (1, each.iteration))


def table(title: str, players: Sequence[Rated]) -> Table:
    """Returns the players, one per row."""
    found = Table(title=title)
    found.add_column("player")
    for name in ("frames", "hours", "Elo", "95% interval"):
        found.add_column(name, justify="right")
    for each in players:
        found.add_row(
            each.name,
            "" if each.frames is None else f"{each.frames:,.0f}",
            "" if each.hours is None else f"{each.hours:.2f}",
            f"{each.elo:,.0f}",
            f"{each.low:,.0f} to {each.high:,.0f}",
        )
    return found


def draw(folder: Path, curves: Mapping[str, Sequence[Rated]], title: str) -> None:
    """Writes the curves, by board, to `ratings.svg` in `folder`: over iterations, frames and hours, as far as known.

    Players that are no network of the run are dashed lines.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it warns when it looks for fonts for the first time
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes_names = [name for name in AXES if any(_places(players, name)[0] for players in curves.values())]
    style: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": title, "text.color": GREY, "axes.labelcolor": GREY}
    style |= {"axes.edgecolor": GREY, "xtick.color": GREY, "ytick.color": GREY, "legend.labelcolor": GREY}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(max(4.0 * len(axes_names), 5.0), 3.6), layout="constrained")
        axes = figure.subplots(1, max(len(axes_names), 1), sharey=True, squeeze=False)[0]
        for name, axis in zip(axes_names, axes):
            for (label, players), colour in zip(curves.items(), COLOURS * len(curves)):
                _draw_curve(axis, players, name, label, colour)
            axis.set_xlabel(AXES[name])
            axis.xaxis.set_major_locator(MaxNLocator(5, integer=name != "hours"))
            if name == "frames":
                axis.xaxis.set_major_formatter(EngFormatter())
            axis.grid(color=GREY, alpha=0.25)
            axis.patch.set_alpha(0)
            axis.spines[["top", "right"]].set_visible(False)
        axes[0].set_ylabel("Elo")
        if len(curves) > 1:
            axes[0].legend(frameon=False)
        figure.suptitle(title)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    write_atomically(folder / CURVE_FILE, stream.getvalue())


def _places(players: Sequence[Rated], axis: str) -> tuple[list[float], list[Rated]]:
    """Returns where on an axis the networks of the run stand, and which these are."""
    known = [each for each in players if each.iteration is not None and getattr(each, axis) is not None]
    return [float(getattr(each, axis)) for each in known], known


def _draw_curve(axis: Any, players: Sequence[Rated], name: str, label: str, colour: str) -> None:
    places, known = _places(players, name)
    axis.fill_between(
        places, [each.low for each in known], [each.high for each in known], color=colour, alpha=0.25, linewidth=0
    )
    axis.plot(places, [each.elo for each in known], color=colour, marker="o", markersize=3, linewidth=1.5, label=label)
    for each in players:
        if each.iteration is None:
            axis.axhline(each.elo, color=colour, linestyle="--", linewidth=1, alpha=0.7)
            axis.annotate(
                each.name, (0.99, each.elo), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8
            )
