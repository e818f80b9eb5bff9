"""The training loop: resume, iterate, evaluate, save, report."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
from jax.sharding import Mesh

from alphagat import sharding
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.training.agent import load_weights
from alphagat.training.checkpoints import CHECKPOINT_FOLDER, Checkpoints
from alphagat.training.display import Display, make_display
from alphagat.training.iteration import Metrics, make_iteration, run_iteration
from alphagat.training.live_ratings import LiveRatings
from alphagat.training.matches import Matches
from alphagat.training.metrics import MetricsWriter, read_metrics
from alphagat.training.run_folder import check_run_folder, open_run_folder
from alphagat.training.setup import Setup, boards_by_iteration, make_setups
from alphagat.training.state import RunState, init_state, with_params


def train(config: Config, workdir: str | os.PathLike) -> None:
    """Trains a run in `workdir`, or resumes it from its latest checkpoint: a resumed run ends as one never interrupted.

    Raises:
      UserError: the config, the folder, or a checkpoint in it cannot be used; nothing was changed.
    """
    config.validate()
    sharding.configure_cpu_devices(config.mesh.data)
    mesh = sharding.make_mesh(config.mesh.data)
    setups = make_setups(config)
    _check_groups(config, mesh)
    restored = _restore_latest(setups, mesh, check_run_folder(workdir, config))  # before anything is written
    if restored and restored[1] >= config.num_iterations:
        return _say_finished(config, Path(workdir), restored[1])
    state, start = restored or (_start(setups, mesh), 0)
    matches = Matches(setups, mesh) if config.evaluation.every else None
    folder = open_run_folder(workdir, config)
    with (
        Checkpoints(folder, keep=config.checkpoint.keep, keep_every=config.checkpoint.keep_every) as checkpoints,
        MetricsWriter(folder, restored_iteration=start) as writer,
        make_display(config.num_iterations, ", ".join(config.boards)) as display,
    ):
        for line in _opening_lines(setups, mesh, state, start):
            display.message(line)
        report = Report(setups, writer, display, LiveRatings(folder, config), hours=_hours_so_far(folder))
        _iterate(setups, mesh, matches, state, start, checkpoints, report)
        display.finish(_closing_lines(setups[0].game, folder, checkpoints.steps()[-1]))


def is_due(step: int, every: int, last: int) -> bool:
    """Returns whether something that happens every so many steps (0: never), and at the last, happens at `step`."""
    return every > 0 and (step % every == 0 or step == last)


def _iterate(
    setups: Sequence[Setup],
    mesh: Mesh,
    matches: Matches | None,
    state: RunState,
    start: int,
    checkpoints: Checkpoints,
    report: "Report",
) -> None:
    config = setups[0].config
    last, order = config.num_iterations, boards_by_iteration(config)
    programs = [make_iteration(setup, mesh) for setup in setups]
    for iteration in range(start + 1, last + 1):
        board = order[iteration - 1]
        state, metrics = run_iteration(programs[board], state, board)
        report.add(iteration, board, metrics)
        if matches is not None and is_due(iteration, config.evaluation.every, last):
            report.wait()
            state, scores = matches.play(state, iteration)
            report.add_scores(scores)
        if is_due(iteration, config.checkpoint.every, last):
            report.flush()
            checkpoints.save(state, iteration)
    report.flush()
    checkpoints.wait()


class Report:
    """Turns device metrics into what people read, one iteration late, so that the host never holds up the devices."""

    def __init__(
        self, setups: Sequence[Setup], writer: MetricsWriter, display: Display, ratings: LiveRatings, hours: float
    ):
        self._plan = setups[0].plan
        self._boards = [setup.game.name for setup in setups]
        self._writer, self._display, self._ratings = writer, display, ratings
        self._seconds = hours * 3600
        self._ready = time.perf_counter()
        self._pending: tuple[int, int, Metrics] | None = None
        self._measured: dict[str, float] = {}
        self._scores: dict[str, float] = {}

    def add(self, iteration: int, board: int, metrics: Metrics) -> None:
        """Takes the metrics of an iteration that may still be running, and reports the one before."""
        self.flush()
        self._pending = iteration, board, metrics

    def wait(self) -> None:
        """Waits for the iteration that was added last, so that what follows is not counted as its time."""
        if self._pending and not self._measured:
            iteration, _, metrics = self._pending
            values = {name: float(value) for name, value in jax.device_get(metrics).items()}
            now = time.perf_counter()
            self._measured = self._describe(iteration, values, now - self._ready)
            self._ready = now

    def add_scores(self, scores: dict[str, float]) -> None:
        """Takes the evaluation of the iteration that was added last, which was waited for, and rates it."""
        self._scores = scores | self._ratings.add(self._measured | scores)
        self._ready = time.perf_counter()

    def flush(self) -> None:
        """Writes and shows the iteration that was added last."""
        if self._pending is None:
            return
        self.wait()
        iteration, board, _ = self._pending
        line = self._measured | self._scores
        several = len(self._boards) > 1
        self._writer.write(iteration, _name_board(line, self._boards[board]) if several else line)
        self._display.update(line)
        self._pending, self._measured, self._scores = None, {}, {}

    def _describe(self, iteration: int, sums: dict[str, float], seconds: float) -> dict[str, float]:
        self._seconds += seconds
        plies, games = sums["plies"], sums["games"]
        per_game = 1 / games if games else float("nan")
        train = ("policy_loss", "value_loss", "policy_entropy", "grad_norm", "learning_rate")
        return {
            "iteration": float(iteration),
            "frames": float(iteration * self._plan.frames_per_iteration),
            "hours": self._seconds / 3600,
            **{f"train/{name}": sums[name] for name in train},
            "selfplay/game_length": sums["game_plies"] * per_game,
            "selfplay/draws": sums["drawn"] * per_game,
            "selfplay/truncated": sums["truncated"] * per_game,
            "selfplay/target_entropy": sums["target_entropy"] / plies,
            "selfplay/games_per_s": games / seconds,
            "selfplay/simulations_per_s": plies * self._plan.simulations_per_ply / seconds,
        }


def _name_board(line: dict[str, float], board: str) -> dict[str, float]:
    """Puts the board into the names of what belongs to one of several: `selfplay/hex:7/game_length`."""
    return {
        f"{section}/{board}/{rest}" if (section := name.partition("/")[0]) in ("train", "selfplay") else name: value
        for name, value in line.items()
        for rest in (name.partition("/")[2],)
    }


def _restore_latest(setups: Sequence[Setup], mesh: Mesh, folder: Path) -> tuple[RunState, int] | None:
    """Returns the latest checkpoint and its iteration, None where there is none; changes nothing on disk."""
    with Checkpoints(folder, read_only=True) as checkpoints:
        steps = checkpoints.steps()
        return (checkpoints.restore(setups, mesh, steps[-1]), steps[-1]) if steps else None


def _start(setups: Sequence[Setup], mesh: Mesh) -> RunState:
    """Makes the state of a new run, with the weights of another run where the config names one."""
    state, source = init_state(setups, mesh), setups[0].config.init_from
    return with_params(state, load_weights(source, setups[0])) if source else state


def _check_groups(config: Config, mesh: Mesh) -> None:
    num_groups = config.selfplay.num_groups
    if num_groups % mesh.size:
        raise UserError(
            f"config.selfplay.num_groups={num_groups} does not divide by the {mesh.size} devices of config.mesh.data: "
            f"set it to {-(-num_groups // mesh.size) * mesh.size}, or config.mesh.data to a divisor of {num_groups}"
        )


def _opening_lines(setups: Sequence[Setup], mesh: Mesh, state: RunState, start: int) -> list[str]:
    plan, config = setups[0].plan, setups[0].config
    asked = config.selfplay.num_games
    kind = mesh.devices.flat[0].device_kind
    lines = [f"{mesh.size} device(s) ({kind}), {plan.num_games} games at once"]
    for setup, board in zip(setups, state.boards):
        lines.append(
            f"{setup.game.name}: over all devices, the replay takes {_megabytes(board.replay)}, and the "
            f"{setup.plan.num_waiting} plies per game that wait for their targets {_megabytes(board.games.waiting)}"
        )
    if config.init_from and not start:
        lines.append(f"starts from the weights of {config.init_from}")
    if plan.num_games != asked:
        lines.append(
            f"config.selfplay.num_games={asked} was changed to {plan.num_games}, a multiple of "
            f"config.selfplay.num_groups={plan.num_groups}"
        )
    if start:
        lines.append(f"resumed after iteration {start}")
    return lines


def _megabytes(tree: Any) -> str:
    return f"{sum(leaf.nbytes for leaf in jax.tree.leaves(tree)) / 1e6:,.1f} MB"


def _hours_so_far(folder: Path) -> float:
    lines = read_metrics(folder)
    return float(lines[-1].get("hours") or 0.0) if lines else 0.0


def _closing_lines(game: Game, folder: Path, step: int) -> list[str]:
    opponent = "random" if game.num_players == 1 else "mcts:100"
    return [
        f"checkpoint: {(folder / CHECKPOINT_FOLDER / str(step)).absolute()}",
        f"next: python -m alphagat.evaluate --workdir {folder} --opponent {opponent} --games 200",
        f"curves: tensorboard --logdir {folder / 'tensorboard'}",
    ]


def _say_finished(config: Config, folder: Path, start: int) -> None:
    # Never entered: there is no progress to draw.
    display = make_display(config.num_iterations, ", ".join(config.boards))
    display.message(
        f"nothing to do: {start} iterations are done, and config.num_iterations={config.num_iterations}; "
        "set it higher to train on"
    )
    display.finish(_closing_lines(make_game(config.boards[0]), folder, start))
