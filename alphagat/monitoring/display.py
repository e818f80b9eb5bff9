"""What a person sees while a run trains: a live picture on a terminal, else a line now and then."""

import abc
import collections
import math
import time
from collections.abc import Callable, Iterable
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from alphagat.monitoring.metric_text import (
    LEARNING,
    Metrics,
    duration,
    holdout_rows,
    interval,
    learning_rows,
    rating_text,
    ratings,
    score_scale,
    score_text,
    scores,
    selfplay_rows,
    single_player_rows,
    sparkline,
)

PLAIN_SECONDS = 10.0  # between two lines without a terminal
PACE_ITERATIONS = 50  # the time left follows the pace of the latest so many
NARROW = 76  # columns below which sections stack
MEDIUM = 66  # columns below which scales and the time elapsed are left out


def make_display(total_iterations: int, board: str, console: Console | None = None) -> "Display":
    """Returns a live display where the console is a terminal, else one that prints lines.

    Args:
      total_iterations: of the whole run, those before a resume included.
      board: its name, shown.
      console: where to; standard output when None.
    """
    if console is None:
        console = Console()
        if console.is_jupyter:  # where Rich makes a page of each line, and the kernel calls itself a terminal
            console = Console(force_jupyter=False, force_terminal=False)
    kind = LiveDisplay if console.is_terminal and not console.is_dumb_terminal else PlainDisplay
    return kind(total_iterations, board, console)


class Display(abc.ABC):
    """Shows the metrics of each iteration. A context manager; `finish` may be called inside or after it.

    `update` reads the names `iteration`, `frames`, `train/*`, `selfplay/*`, `pretrain/*`, `holdout/*`, `eval/elo`,
    `eval/vs_<opponent>/win_rate`, and for games of one player `eval/score` and `eval/vs_<opponent>/score_ratio`, all
    four with the board after `eval/` where there are several; beside a score, `_low` and `_high` of the same name are
    its interval. Every name may be missing, and what was shown stays until a newer value comes.
    """

    def __init__(
        self, total_iterations: int, board: str, console: Console, clock: Callable[[], float] = time.monotonic
    ):
        self.total_iterations = total_iterations
        self.board = board
        self.console = console
        self.metrics: dict[str, float] = {}
        self._clock = clock
        self._start = clock()
        self._updates: collections.deque[tuple[float, int]] = collections.deque(maxlen=PACE_ITERATIONS)

    def update(self, metrics: Metrics) -> None:
        """Takes the metrics of one iteration, `iteration` among them. One that is not finite counts as missing."""
        metrics = {name: value for name, value in metrics.items() if math.isfinite(value)}
        self.metrics = {**self.metrics, **metrics}  # a new one: the live display's thread may be reading the old
        self._updates.append((self._clock(), self.iteration))
        self._show(metrics)

    def message(self, text: str) -> None:
        """Prints a line that stays."""
        self.console.print(Text(text), soft_wrap=True)

    def finish(self, lines: Iterable[str]) -> None:
        """Ends the display and prints the closing lines."""
        self.__exit__(None, None, None)
        for line in lines:
            self.message(line)

    @property
    def iteration(self) -> int:
        return int(self.metrics.get("iteration", 0))

    @property
    def seconds_elapsed(self) -> float:
        return self._clock() - self._start

    @property
    def seconds_left(self) -> float | None:
        """At the latest pace, without the first iteration, which compiles; None before there is a pace."""
        if len(self._updates) < 2:
            return None
        (first_time, first), (last_time, last) = self._updates[0], self._updates[-1]
        pace = (last_time - first_time) / max(last - first, 1)
        return max((self.total_iterations - last) * pace - (self._clock() - last_time), 0.0)

    def __enter__(self) -> "Display":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    @abc.abstractmethod
    def _show(self, metrics: Metrics) -> None:
        """Shows that `self.metrics` has taken these in."""


class PlainDisplay(Display):
    """Prints a line for the first and the last iteration, for every evaluation, and else every few seconds."""

    _printed_at = float("-inf")

    def _show(self, metrics: Metrics) -> None:
        now, found = self._clock(), _evaluation(metrics)
        if now - self._printed_at >= PLAIN_SECONDS or self.iteration >= self.total_iterations or found:
            self._printed_at = now
            self.message(self._line())
        if found:
            self.message("  evaluation: " + ", ".join(found))

    def _line(self) -> str:
        parts = [f"iteration {self.iteration}/{self.total_iterations}"]
        parts += [f"{value} {label}".strip() for label, value in selfplay_rows(self.metrics)]
        parts += [f"{label} {value}" for label, value in learning_rows(self.metrics)]
        left = self.seconds_left
        parts += [f"{duration(self.seconds_elapsed)} elapsed"] + (
            [f"{duration(left)} left"] if left is not None else []
        )
        return f"{self.board}: " + ", ".join(parts)


class LiveDisplay(Display):
    """Redraws a few lines in place: progress, self-play, learning, and the latest scores with their intervals."""

    def __init__(
        self, total_iterations: int, board: str, console: Console, clock: Callable[[], float] = time.monotonic
    ):
        super().__init__(total_iterations, board, console, clock)
        self._history: dict[str, list[float]] = {"policy loss": [], "value loss": []}
        self._live = Live(console=console, get_renderable=self.render, refresh_per_second=2)

    def __enter__(self) -> "LiveDisplay":
        self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _show(self, metrics: Metrics) -> None:
        for label, values in self._history.items():
            if LEARNING[label] in metrics:
                values.append(metrics[LEARNING[label]])

    def render(self) -> Padding:
        """Draws the present state for the console's present width."""
        width = min(self.console.width, 110) - 4
        rows = [self._headline(width), self._bar(width), Text("")]
        rows += self._numbers(width)
        if _evaluation(self.metrics):
            rows += [Text(""), self._scores(width)]
        return Padding(Group(*rows), (1, 2))

    def _headline(self, width: int) -> Table:
        left = self.seconds_left
        done = self.iteration >= self.total_iterations
        remaining = (
            "done" if done else "compiling" if not self._updates else "" if left is None else f"{duration(left)} left"
        )
        line = Table.grid(expand=True)
        line.width = width
        line.add_column(no_wrap=True)
        line.add_column(justify="right", no_wrap=True)
        elapsed = f"{duration(self.seconds_elapsed)} elapsed"
        times = [elapsed, *([remaining] if remaining else [])] if width >= MEDIUM else [remaining or elapsed]
        line.add_row(Text.assemble(("AlphaGAT", "bold"), "  ", (self.board, "cyan")), Text(" · ".join(times), "dim"))
        return line

    def _bar(self, width: int) -> Table:
        count = f"{self.iteration:,} / {self.total_iterations:,}"
        bar = ProgressBar(
            total=self.total_iterations,
            completed=self.iteration,
            width=max(width - len(count) - 2, 8),
            complete_style="cyan",
            finished_style="cyan",
        )
        line = Table.grid(padding=(0, 2))
        line.add_row(bar, Text(count))
        return line

    def _numbers(self, width: int) -> list[Table | Text]:
        """Lays self-play and learning side by side, or below each other where the terminal is narrow."""
        if not self.metrics:
            return []
        title = "recorded games" if "pretrain/epochs" in self.metrics else "self-play"
        selfplay = _section(title, [(label, value, "") for label, value in selfplay_rows(self.metrics)])
        learning = _section(
            "learning",
            [
                (label, value, sparkline(list(self._history.get(label, [])), 16 if width >= MEDIUM else 8))
                for label, value in learning_rows(self.metrics)
            ]
            or [("waiting for the replay to fill", "", "")],
            "cyan",
        )
        if width < NARROW:
            return [selfplay, Text(""), learning]
        both = Table.grid(padding=(0, 8))
        both.add_row(selfplay, learning)
        return [both]

    def _scores(self, width: int) -> Table:
        rows = [(label, rating_text(self.metrics, name)) for label, name in ratings(self.metrics).items()]
        rows += [*single_player_rows(self.metrics), *holdout_rows(self.metrics)]
        table = _section("strength", [(label, *text.partition("  ")[::2], "") for label, text in rows])
        for label, name in scores(self.metrics).items():
            value, _, bounds = score_text(self.metrics, name).partition("  ")
            scale = score_scale(*interval(self.metrics, name)) if width >= MEDIUM else ""
            table.add_row(f"against {label}", value, Text(bounds), scale)
        return table


def _evaluation(metrics: Metrics) -> list[str]:
    """Formats what an evaluation found, one text per result; none where the metrics hold no evaluation."""
    rated = [(label, rating_text(metrics, name)) for label, name in ratings(metrics).items()]
    scored = [(label, score_text(metrics, name)) for label, name in scores(metrics).items()]
    return [
        f"{label} {text}" for label, text in (*rated, *single_player_rows(metrics), *scored, *holdout_rows(metrics))
    ]


def _section(title: str, rows: Iterable[tuple[str, ...]], extra_style: str = "dim") -> Table:
    """Draws rows of label, value and more below a title."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style=extra_style, no_wrap=True)
    table.add_row(Text(title, "not dim bold"))
    for label, *cells in rows:
        table.add_row(label, *map(Text, cells))
    return table
