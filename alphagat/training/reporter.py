"""Reports a run in progress: metrics, ratings and the display."""

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax

from alphagat import config_fields
from alphagat.errors import UserError
from alphagat.evaluation.move_names import replay
from alphagat.monitoring.display import Display, make_display
from alphagat.monitoring.live_ratings import LiveRatings
from alphagat.reporting.gallery import draw_game
from alphagat.runs.folder import fingerprint_of
from alphagat.runs.metrics import (
    BOARD,
    NUM_GAMES,
    PREVIOUS_ITERATION,
    RESULTS,
    TRAIN,
    TRAINED_BOARD,
    MetricsWriter,
    last_value,
    read_metrics,
    tagged,
)
from alphagat.runs.trackers import Trackers
from alphagat.training.audit import Audit, Auditor
from alphagat.training.evaluation import EvaluationResult, PlayedGame
from alphagat.training.iteration import Metrics
from alphagat.training.pretraining.program import EPOCHS, POSITIONS
from alphagat.training.setup import Run


class Diverged(Exception):
    """Too many consecutive updates, a search, or parameters were not finite; the run must roll back."""


@dataclasses.dataclass(frozen=True)
class Sinks:
    """The outputs of a report; only the first process has them."""

    writer: MetricsWriter
    trackers: Trackers
    display: Display
    ratings: LiveRatings

    @property
    def notes(self) -> list[str]:
        """What the user should know about the files that were opened."""
        return [*self.writer.notes, *self.ratings.notes]


@dataclasses.dataclass
class _Unwritten:
    """An iteration that is not written yet.

    Attributes:
      fetched: its metrics, and the time at which they were ready.
      line: its fields for `metrics.jsonl`; empty until it has ended.
    """

    iteration: int
    board: int
    fetched: Future[tuple[dict[str, float], float]]
    audit: Audit | None
    line: dict[str, Any] = dataclasses.field(default_factory=dict)


@contextlib.contextmanager
def open_sinks(run: Run, folder: Path, start: int) -> Iterator[Sinks]:
    """Opens all outputs of a run that continues after iteration `start`."""
    config = run.config
    settings = {field.path: field.value for field in config_fields.fields(config)}
    with (
        MetricsWriter(folder, restored_iteration=start, boards=config.boards, settings=settings) as writer,
        Trackers(config.trackers, folder, settings, fingerprint_of(config)) as trackers,
        make_display(config.num_iterations, config.boards) as display,
    ):
        yield Sinks(writer, trackers, display, LiveRatings(folder, config))


class Reporter:
    """Writes and shows the metrics of each iteration, one iteration late, so that the host never blocks the devices.

    A thread waits for each iteration and records when the devices finish it. The thread that starts the next iteration
    cannot measure this: on GPUs, XLA may block it until the iteration is almost over.
    """

    def __init__(self, run: Run, sinks: Sinks | None, hours: float):
        """Starts the clock.

        Args:
          sinks: the outputs; None in all processes but the first, which only watch for divergence.
          hours: training time before this start.
        """
        self._plan, self._max_skipped = run.boards[0].plan, run.config.learner.max_skipped
        self._audit_every = run.config.selfplay.audit_every
        self._auditors = [Auditor(setup) for setup in run.boards]
        self._run = run
        self._alone = run.boards[0].game.num_players == 1
        self._boards = [setup.game.name for setup in run.boards]
        self._learns_later = run.config.mesh.actors > 0 and len(run.boards) > 1  # by one iteration
        self._sinks = sinks
        self._seconds = hours * 3600
        self.start_clock()
        self._waiter = ThreadPoolExecutor(max_workers=1, thread_name_prefix="report")
        self._last: _Unwritten | None = None
        self._num_games = run.config.evaluation.num_games

    def add(self, iteration: int, board: int, metrics: Metrics, audit: Audit | None) -> None:
        """Takes the results of an iteration, which may still be running, and reports the previous one. `audit` is None
        without self-play.

        Raises:
          Diverged: too many consecutive updates up to the previous iteration, or its searches, were not finite.
          UserError: its searches were not finite before any update.
          AuditError: the self-play of the previous iteration broke the rules.
        """
        self.flush()
        self._last = _Unwritten(iteration, board, self._waiter.submit(_fetch, metrics), audit)

    def start_clock(self) -> None:
        """Restarts the training clock, so that the time before this call, such as compilation, does not count."""
        self._ready = time.perf_counter()

    def say(self, *lines: str) -> None:
        """Prints lines on the display."""
        if self._sinks is not None:
            for line in lines:
                self._sinks.display.message(line)

    def stage(self, text: str) -> None:
        """Shows what the run does until the next iteration, such as compiling."""
        if self._sinks is not None:
            self._sinks.display.stage(text)

    def wait(self) -> None:
        """Waits for the last iteration, so that later work does not count towards its time."""
        last = self._last
        if last and not last.line:
            values, ready = last.fetched.result()
            measured = self._describe(last.iteration, values, ready - self._ready)
            last.line = {BOARD: self._boards[last.board]} | self._trained_board(last.iteration) | measured
            self._ready = ready

    def _trained_board(self, iteration: int) -> dict[str, str]:
        """Names the board that learners train on while actors play another."""
        if not self._learns_later or iteration == 1:
            return {}
        return {TRAINED_BOARD: self._boards[self._run.order[iteration - 2]]}

    def add_evaluation(self, evaluation: EvaluationResult) -> None:
        """Rates and adds the evaluation of the last iteration; call `wait` first."""
        assert self._last is not None
        self._last.line |= self._rate(self._last.line, evaluation)
        self._draw(self._last.iteration, evaluation.games)
        self.start_clock()

    def add_late_evaluation(self, iteration: int, evaluation: EvaluationResult) -> None:
        """Adds the evaluation of an iteration whose metrics were written before the run was interrupted."""
        if self._sinks is not None:
            rated = self._rate({"iteration": iteration}, evaluation)
            self._sinks.writer.amend(iteration, rated)
            self._track(iteration, rated)
            self._sinks.display.update({"iteration": iteration, **rated})
            self._draw(iteration, evaluation.games)

    def _draw(self, iteration: int, games: Sequence[PlayedGame]) -> None:
        if self._sinks is not None:
            for game, actions in games:
                (history,) = replay(game, actions[None])
                self._sinks.writer.draw_game(iteration, game.name, draw_game(game, history.moves))

    def _track(self, iteration: int, line: dict[str, Any]) -> None:
        assert self._sinks is not None
        self.say(*self._sinks.trackers.add(tagged(line, len(self._boards) > 1), iteration))

    def _rate(self, line: dict[str, Any], evaluation: EvaluationResult) -> dict[str, Any]:
        """Returns the fields that an evaluation adds to the line of its iteration."""
        results = evaluation.results
        fields = {NUM_GAMES: self._num_games, PREVIOUS_ITERATION: evaluation.previous, RESULTS: results}
        if self._sinks is not None:
            fields[RESULTS] = results + self._sinks.ratings.add(line | fields)
        return fields

    def flush(self) -> None:
        """Writes and shows the last iteration. Raises as `add` does."""
        if self._last is None:
            return
        self.wait()
        iteration, board, audit, line = self._last.iteration, self._last.board, self._last.audit, self._last.line
        sums, _ = self._last.fetched.result()
        if sums.get("searches_not_finite"):  # before the audit, which would blame the rules
            raise self._search_failure(iteration)
        number = self._run.num_iterations_of(board, iteration)
        if audit is not None and self._audit_every and number % self._audit_every == 0:
            self._auditors[board].check(audit)
        if self._sinks is not None:
            self._sinks.writer.write(iteration, line)
            self._track(iteration, line)
            self._sinks.display.update(line)
        self._last = None
        skipped = int(line[f"{TRAIN}skipped_in_a_row"])
        if skipped >= self._max_skipped:
            raise Diverged(f"up to iteration {iteration}, the last {skipped} updates were not finite")

    def sync(self) -> None:
        """Waits until the lines that `flush` wrote are on disk."""
        if self._sinks is not None:
            self._sinks.writer.sync()

    def _search_failure(self, iteration: int) -> Exception:
        """Returns the error of an iteration whose searches were not finite. Before any update, no retry can help."""
        if iteration > 1 + min(setup.plan.first_update_iteration for setup in self._run.boards):
            return Diverged(f"searches of iteration {iteration} were not finite")
        boards = self._run.config.boards
        return UserError(
            f"config.boards={boards}: searches of iteration {iteration} were not finite, before any update; check the "
            f"features and rewards with alphagat check {boards[0]}"
        )

    def _describe(self, iteration: int, sums: dict[str, float], seconds: float) -> dict[str, float]:
        self._seconds += seconds
        common = {
            "iteration": float(iteration),
            "hours": self._seconds / 3600,
            **{name: value for name, value in sums.items() if name.startswith(TRAIN)},
        }
        if POSITIONS in sums:
            speed = sums[POSITIONS] / seconds
            return common | {"pretrain/epochs": sums[EPOCHS], "pretrain/positions_per_s": speed}
        return common | self._describe_selfplay(iteration, sums, seconds)

    def _describe_selfplay(self, iteration: int, sums: dict[str, float], seconds: float) -> dict[str, float]:
        games = sums["games"]
        num_ended = games or float("nan")
        draws = {} if self._alone else {"selfplay/draws": sums["drawn"] / num_ended}
        return {
            "frames": float(iteration * self._plan.frames_per_iteration),
            "selfplay/game_length": sums["game_plies"] / num_ended,
            **draws,
            "selfplay/truncated": sums["truncated"] / num_ended,
            "selfplay/target_entropy": sums["target_entropy"] / sums["full_plies"],
            "selfplay/games_per_s": games / seconds,
            "selfplay/simulations_per_s": sums["simulations"] / seconds,
        }


def _fetch(metrics: Metrics) -> tuple[dict[str, float], float]:
    """Waits for metrics; returns their values and the time at which they were ready."""
    values = {name: float(value) for name, value in jax.device_get(metrics).items()}
    return values, time.perf_counter()


def hours_so_far(folder: Path) -> float:
    """Returns the training time of the run in `folder`, in hours."""
    return float(last_value(read_metrics(folder), "hours") or 0.0)
