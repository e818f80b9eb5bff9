"""The training loop: resume, iterate, evaluate, save, report."""

import contextlib
import gc
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import jax
from jax.experimental import multihost_utils

from alphagat import config_fields, config_files, config_validation
from alphagat.bounds import shown
from alphagat.config import Config
from alphagat.errors import DiskError, JointError, UserError, disk_failure, first_line
from alphagat.runs import compile_times, trackers
from alphagat.runs.checkpoint_writer import CheckpointWriter, set_aside
from alphagat.runs.folder import check_run_folder, open_run_folder, package_versions
from alphagat.runs.saved_checkpoints import list_steps
from alphagat.runtime import preemption, sharding
from alphagat.runtime.preemption import Interrupted, Preempted
from alphagat.runtime.xla import CACHE_VARIABLE
from alphagat.training.announcements import closing_lines, opening_lines, say_finished
from alphagat.training.compilation import OUT_OF_MEMORY, with_less_memory
from alphagat.training.evaluation import EvaluationResult, RunEvaluator
from alphagat.training.folder_claim import FolderClaim
from alphagat.training.iterations import Iterations, make_iterations
from alphagat.training.memory import check_memory
from alphagat.training.pretraining.dataset import Recorded, read_recorded
from alphagat.training.profiling import Profiler, cache_hits, parse_span
from alphagat.training.reporter import Diverged, Reporter, hours_so_far, open_sinks
from alphagat.training.resume import Start, find_start, with_another_key
from alphagat.training.setup import Run, make_configured_mesh, make_run, num_cpu_devices
from alphagat.training.state import RunState
from alphagat.wording import counted

T = TypeVar("T")

MAX_ROLLBACKS = 3  # from the same checkpoint


def train(config: Config | str | os.PathLike, workdir: str | os.PathLike, *, profile: str | None = None) -> None:
    """Trains a run in `workdir`, or resumes it from its newest intact checkpoint.

    On a CPU, resuming is bit-identical to an uninterrupted run.

    Args:
      config: the config, or the name of one of the package, or of a Python file with `get_config()`.
      profile: `START:STOP`, the iterations to trace for xprof or Perfetto.

    Raises:
      UserError: the config, the folder, or every checkpoint in it is unusable, and nothing was changed; or later, a
        tracker cannot be opened, memory does not suffice, values stay non-finite, or the folder was moved, and what
        was saved remains. JointError if several processes stop together.
      Preempted: SIGTERM or SIGHUP arrived; progress is saved if `is_saved`.
      Interrupted: the first Ctrl-C; a KeyboardInterrupt. Progress is saved if `is_saved`.
      KeyboardInterrupt: the second Ctrl-C, which ends the run at once.
      DiskError: a file of the run cannot be written, for example because the disk is full.
    """
    config = _read_config(config)
    config_validation.validate(config)
    if not isinstance(workdir, str | os.PathLike):
        raise UserError(f"workdir={shown(workdir)}: it must be a path; name a folder, such as runs/hex")
    profiler = Profiler(Path(workdir))
    with preemption.listening(), profiler.listening():
        sharding.configure_cpu_devices(num_cpu_devices(config.mesh))
        sharding.wait_for_all("starting")
        _check_same_start(config)
        run, folder, span = sharding.agree(lambda: _prepare(config, workdir, profile))
        profiler.plan(span)
        _check_same_cut(run)
        with FolderClaim(folder) as claim:
            claim.take(is_new=False)
            with _ends_explained(folder):
                recorded = _read_games(run, folder) if run.learns_from_games else None
                _retry(run, folder, claim, profiler, recorded)


def _check_same_start(config: Config) -> None:
    """Checks that all processes train the same run. Raises JointError."""
    versions = {f"the version of {name}": version for name, version in package_versions().items()}
    sharding.check_equal(versions, "install the same one on all machines")
    values = {f"config.{field.path}": field.value for field in config_fields.fields(config)}
    sharding.check_equal(values, "start all of them with the same command")


def _check_same_cut(run: Run) -> None:
    """Checks that all processes cut the networks alike, which depends on the memory of a device. Raises JointError."""
    cuts = {
        f"config.mesh.stage={run.config.mesh.stage}: the cut of the network for {setup.game.name}": cut
        for setup in run.boards
        if (cut := getattr(setup.network, "blocks_per_stage", None))
    }
    if cuts:
        sharding.check_equal(cuts, "set config.mesh.memory_gb")


@contextlib.contextmanager
def _ends_explained(folder: Path) -> Iterator[None]:
    """Completes the errors with which a run ends early: what is saved, and how to continue."""
    try:
        yield
    except Preempted as error:
        ending = Interrupted if error.by_keyboard else Preempted
        raise ending(is_saved=bool(list_steps(folder))) from error
    except JointError:
        raise
    except Exception as error:
        if failure := disk_failure(error):
            step = max(list_steps(folder), default=0)
            then = f"to continue from iteration {step}" if step else "to start again"
            raise DiskError(f"{folder}: {failure} and run the command again {then}") from error
        raise


def _prepare(
    config: Config, workdir: str | os.PathLike, profile: str | None
) -> tuple[Run, Path, tuple[int, int] | None]:
    """Builds the run and checks what it needs; changes nothing. Raises UserError."""
    trackers.check_installed(config.trackers)
    span = parse_span(profile, config.num_iterations) if profile else None
    run = make_run(config, make_configured_mesh(config))
    check_memory(run)
    folder = check_run_folder(workdir, config)
    return run, folder, span


def _agree_unless_preempted(work: Callable[[], T]) -> T:
    """Returns the result of `work`, which takes long and may be abandoned; UserError ends all processes."""
    return sharding.agree(lambda: preemption.run(work))


def _read_games(run: Run, folder: Path) -> Recorded:
    """Reads the recorded games, the same in all processes. Raises Preempted."""
    recorded = _agree_unless_preempted(lambda: read_recorded(run, folder))
    games = {f"--games: the set of positions of {board}": digest for board, digest in recorded.digests.items()}
    sharding.check_equal(games, "give all of them the same files")
    return recorded


def _read_config(config: Config | str | os.PathLike) -> Config:
    if isinstance(config, str | os.PathLike):
        return config_files.load_config(os.fspath(config))
    if not isinstance(config, Config):
        raise UserError(
            f"config={shown(config)}: it must be an alphagat.config.Config, the name of a config, or a Python file"
        )
    return config


def _retry(run: Run, folder: Path, claim: FolderClaim, profiler: Profiler, recorded: Recorded | None) -> None:
    """Trains to the end, again from the last checkpoint after non-finite updates or searches, or a lack of memory."""
    attempts = _Attempts()
    while True:
        try:
            return _train(run, folder, claim, profiler, attempts, recorded)
        except Diverged as error:
            attempts.error = error.with_traceback(None)
        except jax.errors.JaxRuntimeError as error:
            run = with_less_memory(run, attempts.num_micro_batches, error)
        gc.collect()  # tracebacks hold the old state, and two states may not fit into memory


class _Attempts:
    """What an attempt to train leaves for the next one, and how often the run has returned to a checkpoint.

    Attributes:
      num_micro_batches: the most of any program that was compiled last; 0 before.
      error: why the last attempt failed, until the next one starts.
      reason: why the run last returned to a checkpoint.
    """

    def __init__(self) -> None:
        self.num_micro_batches = 0
        self.error: Diverged | None = None
        self.reason = ""
        self._count = self._iteration = 0

    def count(self, run: Run, iteration: int) -> int:
        """Returns how often the run has returned to the checkpoint of `iteration`, from which it starts now.

        Raises:
          UserError: too often.
        """
        if iteration > self._iteration:
            self._count, self._iteration = 0, iteration
        if self.error is not None and self._count == MAX_ROLLBACKS:
            raise UserError(
                f"config.learner.learning_rate={run.config.learner.learning_rate}: {self.error}, even after "
                f"{MAX_ROLLBACKS} returns to the last checkpoint; set it lower, in another --workdir"
            ) from self.error
        if self.error is not None:
            self._count, self.reason = self._count + 1, str(self.error)
        self.error = None
        return self._count


def _train(
    run: Run,
    folder: Path,
    claim: FolderClaim,
    profiler: Profiler,
    attempts: _Attempts,
    recorded: Recorded | None,
) -> None:
    """Trains to the end. Raises Diverged to return to the last checkpoint."""
    config, is_first = run.config, jax.process_index() == 0
    start = find_start(run, folder)  # must precede every write into a new folder
    owed = _is_evaluation_owed(config, start)
    if start.iteration >= config.num_iterations and not owed:
        if is_first:
            say_finished(config, folder, start.iteration)
        return
    if rollback := attempts.count(run, start.iteration):
        start = start._replace(state=with_another_key(start.state, rollback))
    evaluator = _agree_unless_preempted(lambda: RunEvaluator(run, recorded)) if config.evaluation.every else None
    claim.take(is_new=True)
    # Must precede opening the checkpoints, which all processes do together.
    moved = sharding.agree(lambda: _open_folder(folder, config, start, recorded) if is_first else [])
    with (
        CheckpointWriter(folder, keep=config.checkpoint.keep, keep_every=config.checkpoint.keep_every) as checkpoints,
        contextlib.ExitStack() as stack,
    ):
        sinks = sharding.agree(
            lambda: stack.enter_context(open_sinks(run, folder, start.iteration)) if is_first else None
        )
        report = Reporter(run, sinks, hours_so_far(folder))
        if rollback:
            report.say(f"{attempts.reason}: retry {rollback} from the last checkpoint, with another random key")
        report.say(*moved, *(sinks.notes if sinks else []))
        report.say(*opening_lines(run, start, recorded), *profiler.opening_lines(start.iteration))
        iterations = _compile(run, start.state, report, recorded)
        attempts.num_micro_batches = iterations.num_micro_batches
        if evaluator is not None and not start.iteration:
            report.say(*evaluator.describe_start(start.state))
        steps = _Steps(run, iterations, evaluator, checkpoints, report, profiler)
        state = steps.evaluate_late(start.state, start.iteration) if owed else start.state
        report.start_clock()
        steps.iterate(state, start.iteration)
        if sinks:
            sinks.display.finish(closing_lines(run.boards[0].game, folder, max(start.iteration, config.num_iterations)))


def _open_folder(folder: Path, config: Config, start: Start, recorded: Recorded | None) -> list[str]:
    """Prepares the folder of a run, and moves damaged checkpoints away; returns lines to show."""
    open_run_folder(folder, config)
    if recorded is not None:
        recorded.note(folder)
    return [
        f"checkpoint {step} is damaged ({damage}), and was moved to {set_aside(folder, step)}"
        for step, damage in start.damaged.items()
    ]


def is_due(step: int, every: int, last: int) -> bool:
    """Returns whether a periodic event occurs at `step`: every `every` steps and at the last; never if `every` is 0."""
    return every > 0 and (step % every == 0 or step == last)


class _Steps:
    """Runs iterations, evaluates, saves and reports."""

    def __init__(
        self,
        run: Run,
        iterations: Iterations,
        evaluator: RunEvaluator | None,
        checkpoints: CheckpointWriter,
        report: Reporter,
        profiler: Profiler,
    ):
        self._run, self._iterations, self._evaluator = run, iterations, evaluator
        self._checkpoints, self._report, self._profiler = checkpoints, report, profiler

    def iterate(self, state: RunState, start: int) -> None:
        """Runs the remaining iterations. Raises Preempted once everything is saved, or Diverged."""
        config, report, last = self._run.config, self._report, self._run.config.num_iterations
        for iteration in range(start + 1, last + 1):
            self._checkpoints.check_folder()
            self._profiler.before(iteration)
            state, metrics, audit = self._iterations.run(state, iteration)
            report.add(iteration, self._run.order[iteration - 1], metrics, audit)
            report.say(*self._profiler.after(iteration, metrics))
            if self._evaluator is not None and is_due(iteration, config.evaluation.every, last):
                report.wait()
                state, evaluation = self._evaluate(state, iteration)
                report.add_evaluation(evaluation)
            is_preempted = _is_preempted(iteration, is_first=iteration == start + 1)
            periods = config.checkpoint.every, config.checkpoint.keep_every
            if is_preempted or iteration == 1 or any(is_due(iteration, every, last) for every in periods):
                report.flush()
                self._save(state, iteration)
            if iteration == 1:
                self._checkpoints.wait()  # from now on, metrics without a checkpoint mean that checkpoints were lost
            if is_preempted:
                self._end_preempted()
        report.flush()
        self._checkpoints.wait()

    def _save(self, state: RunState, iteration: int) -> None:
        """Starts to write a checkpoint, whose metrics are flushed. Raises Diverged if a parameter is not finite."""
        self._report.sync()  # a checkpoint without its lines of metrics would lose them for good
        try:
            self._checkpoints.save(state, iteration)
        except FloatingPointError as error:
            raise Diverged(f"the parameters after iteration {iteration} were not finite") from error

    def evaluate_late(self, state: RunState, iteration: int) -> RunState:
        """Plays the matches of an iteration that SIGTERM interrupted, and replaces its checkpoint."""
        state, evaluation = self._evaluate(state, iteration, is_saved=True)
        self._report.add_late_evaluation(iteration, evaluation)
        self._checkpoints.replace(state, iteration)
        return state

    def _evaluate(self, state: RunState, iteration: int, is_saved: bool = False) -> tuple[RunState, EvaluationResult]:
        """Plays the matches. On a lack of memory, or on SIGTERM, saves the state from before them unless it is saved.

        Several processes react to SIGTERM only after the matches.
        """
        assert self._evaluator is not None
        evaluator = self._evaluator
        try:
            return preemption.run(lambda: evaluator.evaluate(state, iteration, self._report.stage))
        except (Preempted, jax.errors.JaxRuntimeError) as error:
            if not isinstance(error, Preempted) and OUT_OF_MEMORY not in first_line(error):
                raise
            self._report.flush()
            if not is_saved:
                self._save(state, iteration)
            if isinstance(error, Preempted):
                self._end_preempted()
            self._checkpoints.wait()
            num_games = self._run.config.evaluation.num_games
            raise UserError(
                f"config.evaluation.num_games={num_games}: a device ran out of memory in the evaluation of iteration "
                f"{iteration} ({first_line(error)}); lower it or config.evaluation.num_simulations"
            ) from error

    def _end_preempted(self) -> None:
        self._checkpoints.wait()
        raise Preempted


def _compile(run: Run, state: RunState, report: Reporter, recorded: Recorded | None) -> Iterations:
    """Compiles the programs of all boards and reports the time. Raises Preempted."""
    before, start = cache_hits(), time.perf_counter()
    report.stage(f"compiling {counted(len(run.boards), 'program')}{compile_times.describe_expected(run.config)}")
    iterations = _agree_unless_preempted(lambda: make_iterations(run, state, report.say, recorded))
    hits = cache_hits() - before
    cached = f", {hits} from the cache in {os.environ.get(CACHE_VARIABLE)}" if hits else ""
    seconds = time.perf_counter() - start
    report.say(f"compiled the programs of {counted(len(run.boards), 'board')} in {seconds:.0f} s{cached}")
    if jax.process_index() == 0:
        compile_times.remember(run.config, seconds, hits)
    return iterations


def _is_preempted(iteration: int, is_first: bool) -> bool:
    """Returns whether any process received SIGTERM; all processes agree at the same iteration.

    They agree on the iteration after the last one that any of them has asked about. Before the first iteration of a
    resumed run, that is iteration 1, so `is_first` also asks about all earlier ones.
    """
    if jax.process_count() == 1:
        return preemption.is_requested()
    asked = range(1 if is_first else iteration, iteration + 1)
    return any(multihost_utils.reached_preemption_sync_point(each) for each in asked)


def _is_evaluation_owed(config: Config, start: Start) -> bool:
    """Returns whether the run was interrupted between an iteration and its evaluation."""
    is_owed = start.iteration > 0 and is_due(start.iteration, config.evaluation.every, config.num_iterations)
    return is_owed and int(start.state.evaluated) < start.iteration
