"""The display of a run: live on a terminal, otherwise occasional lines."""

import abc
import collections
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import IO, Any, cast

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from alphagat.monitoring.catalogue import DATA, LEARNING
from alphagat.monitoring.metric_text import (
    ResultText,
    describe_results,
    duration,
    interval,
    scalar_rows,
    score_scale,
    sparkline,
)
from alphagat.runs.metrics import BOARD, LOSSES, RESULTS, TEXTS, TRAIN, WIN_RATE, Line, Result, board_of
from alphagat.runtime import terminal

SELFPLAY = "selfplay/"  # prefix of metrics of the board that was played
PLAIN_SECONDS = 10.0  # minimum interval between lines without a terminal
PACE_ITERATIONS = 50  # recent iterations from which the time left is estimated
NARROW = 76  # terminal width below which sections stack
MEDIUM = 66  # terminal width below which scales and elapsed time are omitted


def make_display(total_iterations: int, boards: Sequence[str], console: Console | None = None) -> "Display":
    """Returns a live display if the console is a terminal, else one that prints lines.

    Args:
      total_iterations: of the whole run, including those before a resume.
      boards: names of the boards.
      console: output; standard output if None.
    """
    if console is None:
        console = Console(file=cast(IO[str], _Output(sys.stdout)))
        if console.is_jupyter:  # Rich renders each line as HTML there, and the kernel claims to be a terminal
            console = Console(force_jupyter=False, force_terminal=False)
    kind = LiveDisplay if console.is_terminal and not console.is_dumb_terminal else PlainDisplay
    return kind(total_iterations, boards, console)


class _Output:
    """Standard output, which becomes silent once it fails, so that the run goes on and saves.

    It fails after a logout, when the reader of a pipe has ended, and when its disk is full.
    """

    def __init__(self, stream: IO[str]):
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> None:
        self._attempt(self._stream.write, text)

    def flush(self) -> None:
        self._attempt(self._stream.flush)

    def _attempt(self, output: Callable, *arguments: str) -> None:
        try:
            output(*arguments)
        except OSError:
            terminal.silence(self._stream)


class Display(abc.ABC):
    """Shows the metrics of each iteration. A context manager; `finish` may be called inside or after it.

    `update` takes lines of `metrics.jsonl` and shows the scalars and results of the catalogue. Any of them may be
    missing; the display keeps the last value. In a run on several boards, the scalars are those of the board of the
    last line.
    """

    def __init__(
        self,
        total_iterations: int,
        boards: Sequence[str],
        console: Console,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.total_iterations = total_iterations
        self.boards = boards
        self.console = console
        self.metrics: dict[str, float] = {}
        self._by_board: dict[str, dict[str, float]] = {}
        self._place: Line = {}  # the fields of the last line that name its boards
        self.results: dict[tuple[str, str, str | None], Result] = {}
        self._clock = clock
        self._start = clock()
        self._updates: collections.deque[tuple[float, int]] = collections.deque(maxlen=PACE_ITERATIONS)
        self._stage: tuple[str, float] | None = None

    def update(self, line: Line) -> None:
        """Takes the metrics of one iteration, including `iteration`. A non-finite value counts as missing."""
        scalars = {name: value for name, value in line.items() if isinstance(value, int | float)}
        scalars = {name: value for name, value in scalars.items() if math.isfinite(value)}
        results = [each for each in line.get(RESULTS, ()) if math.isfinite(each.value)]
        is_iteration = BOARD in line  # else a late evaluation, of an iteration before the start
        if is_iteration:
            self._place = {name: line[name] for name in TEXTS if name in line}
        for name, value in scalars.items():
            self._by_board.setdefault(board_of(self._place, name), {})[name] = value
        # Creates new objects, because the live display's thread may be reading the old ones.
        self.metrics = {
            name: value
            for board, values in self._by_board.items()
            for name, value in values.items()
            if board == board_of(self._place, name)
        }
        self.results = {**self.results, **{(each.name, each.board, each.opponent): each for each in results}}
        if is_iteration:
            self._updates.append((self._clock(), self.iteration))
        self._stage = None
        self._show(scalars, describe_results(results, self.boards))

    def _on_board(self, name: str) -> str:
        """Names the board of a scalar, or of those with a prefix, in a run on several boards."""
        board = board_of(self._place, name)
        return f" on {board}" if board and len(self.boards) > 1 else ""

    def stage(self, text: str) -> None:
        """Names what the run does from now until the next update, such as compiling."""
        self._stage = text, self._clock()

    def message(self, text: str) -> None:
        """Prints a permanent line."""
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
        """Seconds left at the recent pace, which excludes the first iteration; None before a pace is known."""
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
    def _show(self, scalars: Mapping[str, float], results: Sequence[ResultText]) -> None:
        """Shows the newest scalars and results, which `self.metrics` and `self.results` already include."""


class PlainDisplay(Display):
    """Prints a line for the first and the last iteration, each evaluation, and otherwise every few seconds."""

    _printed_at = float("-inf")

    def stage(self, text: str) -> None:
        super().stage(text)
        if self._clock() - self._printed_at >= PLAIN_SECONDS:
            self._printed_at = self._clock()
            self.message(f"{text} ...")

    def _show(self, scalars: Mapping[str, float], results: Sequence[ResultText]) -> None:
        now = self._clock()
        is_first, is_last = len(self._updates) == 1, self.iteration >= self.total_iterations
        if now - self._printed_at >= PLAIN_SECONDS or is_first or is_last or results:
            self._printed_at = now
            self.message(self._line())
        if results:
            self.message("  evaluation: " + ", ".join(f"{each.label} {each.value_and_interval}" for each in results))

    def _line(self) -> str:
        parts = [f"iteration {self.iteration}/{self.total_iterations}{self._on_board(SELFPLAY)}"]
        parts += [f"{value} {label}".strip() for label, value in scalar_rows(self.metrics, DATA)]
        parts += [f"{label} {value}" for label, value in scalar_rows(self.metrics, LEARNING)]
        left = self.seconds_left
        parts += [f"{duration(self.seconds_elapsed)} elapsed"] + (
            [f"{duration(left)} left"] if left is not None else []
        )
        return f"{', '.join(self.boards)}: " + ", ".join(parts)


class LiveDisplay(Display):
    """Redraws a few lines in place: progress, self-play, learning, and the latest scores with their intervals."""

    def __init__(
        self,
        total_iterations: int,
        boards: Sequence[str],
        console: Console,
        clock: Callable[[], float] = time.monotonic,
    ):
        super().__init__(total_iterations, boards, console, clock)
        self._history: collections.defaultdict[tuple[str, str], list[float]] = collections.defaultdict(list)
        self._live = Live(console=console, get_renderable=self.render, refresh_per_second=2)

    def __enter__(self) -> "LiveDisplay":
        self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _show(self, scalars: Mapping[str, float], results: Sequence[ResultText]) -> None:
        for metric in LEARNING:
            if metric.name in LOSSES and metric.name in scalars:
                self._history[board_of(self._place, TRAIN), metric.label].append(scalars[metric.name])

    def render(self) -> Padding:
        """Draws the current state for the console's current width."""
        width = min(self.console.width, 110) - 4
        rows = [self._headline(width), self._bar(width), Text("")]
        rows += self._numbers(width)
        if self.results:
            rows += [Text(""), self._strength(width)]
        return Padding(Group(*rows), (1, 2))

    def _headline(self, width: int) -> Table:
        remaining = self._remaining()
        line = Table.grid(expand=True)
        line.width = width
        line.add_column(no_wrap=True)
        line.add_column(justify="right", no_wrap=True)
        elapsed = f"{duration(self.seconds_elapsed)} elapsed"
        times = [elapsed, *([remaining] if remaining else [])] if width >= MEDIUM else [remaining or elapsed]
        line.add_row(
            Text.assemble(("AlphaGAT", "bold"), "  ", (", ".join(self.boards), "cyan")), Text(" · ".join(times), "dim")
        )
        return line

    def _remaining(self) -> str:
        """Returns the stage with its time, or the time left; empty if it is unknown."""
        left = self.seconds_left
        if self._stage is not None:
            text, since = self._stage
            return f"{text}: {duration(self._clock() - since)} so far"
        if self.iteration >= self.total_iterations:
            return "done"
        return "" if left is None else f"{duration(left)} left"

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
        """Places self-play and learning side by side, or stacked on a narrow terminal."""
        if not self.metrics:
            return []
        title = "recorded games" if "pretrain/epochs" in self.metrics else "self-play"
        title += self._on_board(SELFPLAY)
        trained = board_of(self._place, TRAIN)
        selfplay = _section(title, [(label, value, "") for label, value in scalar_rows(self.metrics, DATA)])
        learning = _section(
            f"learning{self._on_board(TRAIN)}",
            [
                (
                    label,
                    value,
                    sparkline(list(self._history.get((trained, label), [])), 16 if width >= MEDIUM else 8),
                )
                for label, value in scalar_rows(self.metrics, LEARNING)
            ]
            or [("waiting for the replay to fill", "", "")],
            "cyan",
        )
        if width < NARROW:
            return [selfplay, Text(""), learning]
        both = Table.grid(padding=(0, 8))
        both.add_row(selfplay, learning)
        return [both]

    def _strength(self, width: int) -> Table:
        table = _section("strength", [])
        for label, value, ends, result in describe_results(self.results.values(), self.boards):
            is_drawn = result.name == WIN_RATE and width >= MEDIUM
            table.add_row(label, value, Text(ends), score_scale(result.value, *interval(result)) if is_drawn else "")
        return table


def _section(title: str, rows: Iterable[tuple[str, ...]], extra_style: str = "dim") -> Table:
    """Draws rows of label, value and extra cells below a title."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style=extra_style, no_wrap=True)
    table.add_row(Text(title, "not dim bold"))
    for label, *cells in rows:
        table.add_row(label, *map(Text, cells))
    return table
