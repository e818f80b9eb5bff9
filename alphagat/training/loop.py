"""The training loop: resume, iterate, evaluate, save, report."""

import contextlib
import functools
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
from jax import stages
from jax.experimental import multihost_utils
from jax.sharding import Mesh

from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.runs.checkpoints import Checkpoints, set_aside
from alphagat.runs.folder import check_run_folder, open_run_folder
from alphagat.runs.metrics import Result
from alphagat.runtime import preemption, sharding
from alphagat.runtime.preemption import Preempted
from alphagat.runtime.xla import CACHE_VARIABLE
from alphagat.training.actor_learner import ActorLearnerIterations
from alphagat.training.announcements import closing_lines, opening_lines, say_finished
from alphagat.training.compilation import compile_iterations, with_less_memory
from alphagat.training.evaluators import Matches
from alphagat.training.iteration import run_iteration
from alphagat.training.pretraining.dataset import Recorded, read_recorded
from alphagat.training.pretraining.holdout import Holdout, MatchesAndHoldout
from alphagat.training.pretraining.program import PretrainIterations
from alphagat.training.profiling import Profiler, cache_counts, parse_span
from alphagat.training.reporter import Diverged, Report, hours_so_far, open_sinks
from alphagat.training.resume import Start, find_start, with_another_key
from alphagat.training.setup import (
    Setup,
    boards_by_iteration,
    check_groups,
    make_configured_mesh,
    make_setups,
)
from alphagat.training.state import RunState

MAX_ROLLBACKS = 3  # from one checkpoint


def train(config: Config, workdir: str | os.PathLike, *, profile: str | None = None) -> None:
    """Trains a run in `workdir`, or resumes it from its newest whole checkpoint: a resumed run ends as one never
    interrupted.

    Args:
      profile: `START:STOP`, iterations of which a trace is written for xprof or Perfetto.

    Raises:
      UserError: the config, the folder, or every checkpoint in it cannot be used; nothing was changed.
      Preempted: SIGTERM has come, and all that the run did is saved.
    """
    config.validate()
    profiler = Profiler(Path(workdir), parse_span(profile) if profile else None)
    with preemption.listening(), profiler.listening():
        sharding.configure_cpu_devices(config.mesh.num_devices)
        mesh = make_configured_mesh(config)
        setups = make_setups(config)
        check_groups(config, mesh)
        recorded = None
        if config.pretrain.games:
            folder = check_run_folder(workdir, config)
            recorded = preemption.run(lambda: read_recorded(setups, folder))
        rollbacks = 0
        while True:
            try:
                return _train(setups, mesh, workdir, profiler, rollbacks, recorded)
            except Diverged as error:
                if rollbacks == MAX_ROLLBACKS:
                    rate = f"config.learner.learning_rate={config.learner.learning_rate}"
                    raise UserError(
                        f"{rate}: {error}, also after the run went back {MAX_ROLLBACKS} times to its last checkpoint; "
                        "set it lower, in another --workdir"
                    ) from error
                rollbacks += 1
            except jax.errors.JaxRuntimeError as error:
                setups = with_less_memory(setups, mesh, error)


def _train(
    setups: Sequence[Setup],
    mesh: Mesh,
    workdir: str | os.PathLike,
    profiler: Profiler,
    rollback: int,
    recorded: Recorded | None,
) -> None:
    """Trains to the end. Raises Diverged where it has to go back, which a `rollback` above 0 follows."""
    config = setups[0].config
    folder = check_run_folder(workdir, config)
    start = find_start(setups, mesh, folder)  # before anything is written
    owed = _is_evaluation_owed(config, start)
    if start.iteration >= config.num_iterations and not owed:
        return say_finished(config, folder, start.iteration)
    if rollback:
        start = start._replace(state=with_another_key(start.state, rollback))
    matches = preemption.run(lambda: _make_matches(setups, mesh, recorded)) if config.evaluation.every else None
    is_first = jax.process_index() == 0
    moved: list[str] = []
    if is_first:
        open_run_folder(folder, config)
        if recorded is not None:
            recorded.note(folder)
        # Before any process opens the checkpoints, which they do together.
        moved = [
            f"checkpoint {step} is damaged ({damage}), and was moved to {set_aside(folder, step)}"
            for step, damage in start.damaged.items()
        ]
    with (
        Checkpoints(folder, keep=config.checkpoint.keep, keep_every=config.checkpoint.keep_every) as checkpoints,
        open_sinks(setups, folder, start.iteration) if is_first else contextlib.nullcontext() as sinks,
    ):
        report = Report(setups, sinks, hours_so_far(folder))
        if rollback:
            report.say(f"updates were not finite: the run goes back, by another way ({rollback})")
        report.say(*moved, *opening_lines(setups, mesh, start, recorded))
        programs = _compile(setups, mesh, start.state, report, recorded)
        if isinstance(matches, MatchesAndHoldout) and not start.iteration:
            report.say(matches.before(start.state))
        run = _Run(config, programs, matches, checkpoints, report, profiler)
        state = run.evaluate_late(start.state, start.iteration) if owed else start.state
        report.start_clock()
        run.iterate(state, start.iteration)
        if sinks:
            sinks.display.finish(closing_lines(setups[0].game, folder, config.num_iterations))


def is_due(step: int, every: int, last: int) -> bool:
    """Returns whether something that happens every so many steps (0: never), and at the last, happens at `step`."""
    return every > 0 and (step % every == 0 or step == last)


class _Run:
    """The parts of a run that its iterations use."""

    def __init__(
        self,
        config: Config,
        programs: Sequence[Callable] | ActorLearnerIterations | PretrainIterations,
        matches: Matches | MatchesAndHoldout | None,
        checkpoints: Checkpoints,
        report: Report,
        profiler: Profiler,
    ):
        self._config, self._programs, self._matches = config, programs, matches
        self._checkpoints, self._report, self._profiler = checkpoints, report, profiler

    def iterate(self, state: RunState, start: int) -> None:
        """Runs what is left of the iterations. Raises Preempted, once all is saved, or Diverged."""
        config, report = self._config, self._report
        last, order = config.num_iterations, boards_by_iteration(config)
        for iteration in range(start + 1, last + 1):
            board = order[iteration - 1]
            self._profiler.before(iteration)
            if isinstance(self._programs, ActorLearnerIterations | PretrainIterations):
                state, metrics, audit = self._programs.run(state, iteration)
            else:
                state, metrics, audit = run_iteration(self._programs[board], state, board)
            report.add(iteration, board, metrics, audit)
            report.say(*self._profiler.after(iteration, metrics))
            if self._matches is not None and is_due(iteration, config.evaluation.every, last):
                report.wait()
                state, results = self._evaluate(state, iteration)
                report.add_results(results)
            is_preempted = _is_preempted(iteration)
            if is_preempted or is_due(iteration, config.checkpoint.every, last):
                report.flush()
                self._checkpoints.save(state, iteration)
            if is_preempted:
                self._end_preempted()
        report.flush()
        self._checkpoints.wait()

    def evaluate_late(self, state: RunState, iteration: int) -> RunState:
        """Plays the matches of an iteration that a SIGTERM has cut short, and saves the state with them done."""
        state, results = self._evaluate(state, iteration, is_saved=True)
        self._report.add_late_results(iteration, results)
        self._checkpoints.replace(state, iteration)
        return state

    def _evaluate(self, state: RunState, iteration: int, is_saved: bool = False) -> tuple[RunState, list[Result]]:
        """Plays the matches; a SIGTERM saves the state as it was before them, unless it is on disk already."""
        assert self._matches is not None
        matches = self._matches
        try:
            return preemption.run(lambda: matches.play(state, iteration))
        except Preempted:
            self._report.flush()
            if not is_saved:
                self._checkpoints.save(state, iteration)
            self._end_preempted()
            raise

    def _end_preempted(self) -> None:
        self._checkpoints.wait()
        raise Preempted


def _make_matches(setups: Sequence[Setup], mesh: Mesh, recorded: Recorded | None) -> Matches | MatchesAndHoldout:
    matches = Matches(setups, mesh)
    return matches if recorded is None else MatchesAndHoldout(matches, Holdout(setups, mesh, recorded))


def _compile(
    setups: Sequence[Setup], mesh: Mesh, state: RunState, report: Report, recorded: Recorded | None
) -> list[stages.Compiled] | ActorLearnerIterations | PretrainIterations:
    """Compiles the programs of all boards, and tells how long it took. Raises Preempted."""
    before, start = dict(cache_counts()), time.perf_counter()
    prepare = ActorLearnerIterations if setups[0].config.mesh.actors else compile_iterations
    if recorded is not None:
        prepare = functools.partial(PretrainIterations, recorded=recorded)
    programs = preemption.run(lambda: prepare(setups, mesh, state, report.say))
    hits = cache_counts()["hits"] - before["hits"]
    kept = f", {hits} from the cache in {os.environ.get(CACHE_VARIABLE)}" if hits else ""
    report.say(f"the programs of {len(setups)} board(s) are ready after {time.perf_counter() - start:.0f} s{kept}")
    return programs


def _is_preempted(iteration: int) -> bool:
    """Returns whether SIGTERM has come: to any process, and then at the same iteration on all."""
    if jax.process_count() > 1:
        return multihost_utils.reached_preemption_sync_point(iteration)
    return preemption.is_requested()


def _is_evaluation_owed(config: Config, start: Start) -> bool:
    """Returns whether the run was interrupted between an iteration and its evaluation."""
    is_owed = start.iteration > 0 and is_due(start.iteration, config.evaluation.every, config.num_iterations)
    return is_owed and int(start.state.evaluated) < start.iteration
