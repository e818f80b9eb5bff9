"""The messages at the beginning and the end of a run."""

import itertools
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from alphagat.agents.build import param_shapes
from alphagat.config import Config
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.games.states import is_deterministic_duel
from alphagat.monitoring.display import make_display
from alphagat.networks.fused.network import FusedNetwork
from alphagat.networks.pipeline import PipelinedNetwork
from alphagat.runs.folder import CHECKPOINT_FOLDER
from alphagat.training.pretraining.dataset import Recorded
from alphagat.training.resume import Start
from alphagat.training.setup import Run, Setup, kernel_obstacle
from alphagat.training.state import BoardState, held_share
from alphagat.wording import counted, sized


def opening_lines(run: Run, start: Start, recorded: Recorded | None) -> list[str]:
    """Returns the lines to print before the first iteration; `recorded` is None in self-play runs."""
    plan, config, mesh = run.boards[0].plan, run.config, run.mesh
    asked = config.selfplay.num_games
    kind = mesh.devices.flat[0].device_kind
    lines = [
        f"{counted(mesh.size, 'device')} ({kind})" + (f", {plan.num_games} games at once" if recorded is None else "")
    ]
    lines += [] if recorded is None else recorded.lines
    if num_actors := config.mesh.actors:
        lines.append(f"{num_actors} for self-play, {mesh.size - num_actors} for learning")
    for setup, board in itertools.zip_longest(run.boards, start.state.boards):  # no state without self-play
        lines += [f"{setup.game.name}: {line}" for line in _board_lines(setup, board)]
    lines += _slicing_lines(run)
    if config.init_from and not start.iteration:
        lines.append(f"starts from the weights of {config.init_from}")
    if plan.num_games != asked and recorded is None:
        lines.append(
            f"config.selfplay.num_games={asked} was changed to {plan.num_games}, a multiple of "
            f"config.selfplay.num_groups={plan.num_groups}"
        )
    if recorded is None and abs(plan.replay_ratio / config.learner.replay_ratio - 1) > 0.05:
        lines.append(
            f"config.learner.replay_ratio={config.learner.replay_ratio:g} was changed to {plan.replay_ratio:g}: an "
            f"iteration has {plan.samples_per_iteration:,} new positions and "
            f"{counted(plan.updates_per_iteration, 'update')} of config.learner.batch_size={config.learner.batch_size}"
        )
    if start.iteration:
        lines.append(f"resumed after iteration {start.iteration}")
    return lines


def _slicing_lines(run: Run) -> list[str]:
    """Says if `mesh.fsdp` saves less than half of the memory that it should."""
    config, mesh, setup = run.config, run.mesh, run.boards[0]
    if not config.mesh.fsdp:
        return []
    share = held_share(mesh, param_shapes(setup.game, setup.network), fsdp=True)
    if share <= (1 + 1 / mesh.size) / 2:
        return []
    return [
        f"config.mesh.fsdp=True: each device keeps {share:.0%} of the parameters, since {counted(mesh.size, 'device')} "
        f"divide few of their dimensions; set config.network.width to a multiple of {mesh.size}, or use other devices"
    ]


def _board_lines(setup: Setup, board: BoardState | None) -> Iterator[str]:
    """Yields the memory of a board's state, if it has one, and how its network is computed."""
    config, network = setup.config, setup.network
    if board is not None:
        yield (
            f"memory over all devices: {_size(board.replay)} of replay, {_size(board.games.waiting)} of positions "
            f"without targets ({setup.plan.num_waiting} plies per game)"
        )
    if jax.default_backend() == "gpu" and (obstacle := kernel_obstacle(config, setup.game)):
        yield f"blocks run as separate XLA operations, not as one kernel: {obstacle}"
    if isinstance(network, FusedNetwork):
        yield "blocks run as one GPU kernel, which agrees with XLA's operations"
    if isinstance(network, PipelinedNetwork):
        counts = " + ".join(str(count) for count in network.blocks_per_stage)
        yield f"{counts} blocks in {config.mesh.stage} stages, balanced by their arithmetic"


def _size(tree: Any) -> str:
    return sized(sum(leaf.nbytes for leaf in jax.tree.leaves(tree)))


def closing_lines(game: Game, folder: Path, step: int) -> list[str]:
    """Returns the lines to print after the last iteration: the run's location and the next commands."""
    opponent, run = "mcts:100" if is_deterministic_duel(game) else "random", shlex.quote(str(folder))
    return [
        f"checkpoint: {(folder / CHECKPOINT_FOLDER / str(step)).absolute()}",
        f"play against it: alphagat play {run}",
        f"curves, games and attention: alphagat report {run}",
        f"a match: alphagat evaluate {run} --opponent {opponent} --games 200",
    ]


def say_finished(config: Config, folder: Path, start: int) -> None:
    """Reports that the run is already complete."""
    # The display is not entered: there is no progress to draw.
    display = make_display(config.num_iterations, config.boards)
    display.message(
        f"nothing to do: {counted(start, 'iteration')} done, and config.num_iterations={config.num_iterations}; "
        "raise it to continue"
    )
    display.finish(closing_lines(make_game(config.boards[0]), folder, start))
