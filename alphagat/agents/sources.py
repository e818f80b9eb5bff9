"""Resolves names of trained networks: the checkpoint or file of a name, and the shipped network of a board."""

import dataclasses
import functools
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from alphagat.agents import weight_files
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.runs.folder import CHECKPOINT_FOLDER, CONFIG_FILE, is_run, read_config
from alphagat.runs.saved_checkpoints import SavedCheckpoints, list_steps

SHIPPED = "shipped"  # the shipped network that plays the board
USAGES = "a run folder, one of its checkpoints (runs/1/checkpoints/40), an exported .safetensors file, shipped"


@dataclasses.dataclass(frozen=True)
class Source:
    """A trained network whose parameters are not read yet.

    Attributes:
      path: the run folder, or the .safetensors file.
      config: the config of the run.
      iteration: the iteration of the checkpoint.
    """

    path: Path
    config: Config
    iteration: int

    def read_params(self, shapes: Any) -> Any:
        """Reads the parameters onto the first device.

        Args:
          shapes: the expected pytree of `ShapeDtypeStruct` (`build.param_shapes`).

        Raises:
          UserError: the parameters are damaged, not finite, or belong to another network.
        """
        params = self._read(shapes)
        for path, leaf in jax.tree_util.tree_leaves_with_path(jax.device_get(params)):
            if not np.isfinite(leaf).all():
                name = jax.tree_util.keystr(path, simple=True, separator="/")
                raise UserError(f"{self.path} holds the parameter {name} with values that are not finite; use another")
        return params

    def _read(self, shapes: Any) -> Any:
        if self.path.is_file():
            return weight_files.read_params(self.path, shapes)
        return SavedCheckpoints(self.path).restore_params(shapes, self.iteration)


class RunPath(NamedTuple):
    """A run folder, and the iteration if the path names one of its checkpoints."""

    folder: Path
    iteration: int | None


def resolve(name: str | os.PathLike, iteration: int | None = None, board: str | None = None) -> Source:
    """Resolves `name` to a trained network; reads its config, not its parameters.

    Args:
      name: a run folder, one of its checkpoints (runs/1/checkpoints/40), a .safetensors file, the name of a shipped
        network, or "shipped".
      iteration: the checkpoint of a run; None: the one in `name`, else the latest.
      board: the board for which "shipped" picks a network.

    Raises:
      UserError: there is no such run, checkpoint, file or shipped network.
    """
    if not os.fspath(name):  # a Path would mean the current folder
        raise UserError(f"network '': the name is empty; use {USAGES}, or the name of a shipped network, such as hex")
    if os.fspath(name) == SHIPPED:
        if board is None:
            raise UserError(f"player {SHIPPED!r} needs a board; name one, such as --board hex:5")
        name = shipped_network_for(board)
    if (file := weight_files.find_file(os.fspath(name))) is not None:
        config, file_iteration = weight_files.read_header(file)
        if iteration not in (None, file_iteration):
            raise UserError(f"{file} holds iteration {file_iteration}, not {iteration}; leave out the iteration")
        return Source(file, config, file_iteration)
    if (run := find_run(Path(name))) is None:
        raise UserError(
            f"{name} holds no run, since {Path(name) / CONFIG_FILE} does not exist; use {USAGES}, or the name of a "
            f"shipped network: {', '.join(weight_files.shipped_names())}"
        )
    if iteration is not None and run.iteration not in (None, iteration):
        raise UserError(f"{name} holds iteration {run.iteration}, not {iteration}; leave out the iteration")
    wanted = run.iteration if iteration is None else iteration
    config = read_config(run.folder)
    return Source(run.folder, config, choose_step(run.folder, wanted))


def is_source(name: str) -> bool:
    """Returns whether `resolve` should read `name`: a shipped network, an exported file, a checkpoint or any folder."""
    path = Path(name)
    return name == SHIPPED or weight_files.find_file(name) is not None or path.is_dir() or find_run(path) is not None


def find_run(path: Path) -> RunPath | None:
    """Splits the path of a run, or of one of its checkpoints, which may be missing; None if `path` is neither."""
    if is_run(path):  # first, since a run folder may have any name
        return RunPath(path, None)
    if path.parent.name == CHECKPOINT_FOLDER and path.parent.is_dir() and path.name.isdecimal():
        return RunPath(path.parent.parent, int(path.name))
    return None


def choose_steps(folder: Path, wanted: Sequence[int] = ()) -> list[int]:
    """Returns the wanted iterations, ascending and without repeats; all complete checkpoints if none are given.

    Raises:
      UserError: the run has no checkpoint, or lacks a wanted one.
    """
    steps = list_steps(folder)
    if not steps:
        raise UserError(f"{folder} has no complete checkpoint yet; wait until the run has saved one")
    for iteration in wanted:
        if iteration not in steps:
            raise UserError(
                f"{folder} has no checkpoint of iteration {iteration}, only of {', '.join(map(str, steps))}; "
                "choose one of these (config.checkpoint.keep_every makes a run keep more)"
            )
    return sorted(set(wanted or steps))


def choose_step(folder: Path, wanted: int | None) -> int:
    """Returns the wanted iteration; None: the latest complete checkpoint. Raises UserError as `choose_steps` does."""
    return choose_steps(folder, () if wanted is None else (wanted,))[-1]


def shipped_network_for(board: str) -> str:
    """Returns the name of the shipped network of the board's family that trained on the board, or else on boards with
    the same kinds of nodes, or else on the nearest number of nodes.

    Raises:
      UserError: no shipped network plays the board.
    """
    game, networks = make_game(board), _shipped_games(weight_files.FOLDER)

    def distance(name: str) -> tuple[bool, bool, float]:
        trained = networks[name]
        sizes = [math.log(each.topology.num_nodes / game.topology.num_nodes) for each in trained]
        return game not in trained, node_kinds(trained) != node_kinds([game]), min(map(abs, sizes))

    fit = [name for name, trained in networks.items() if trained[0].family == game.family]
    if not fit:
        played = ", ".join(trained[0].name for trained in networks.values())
        raise UserError(f"board {board}: no shipped network plays it, only boards like {played}; name a run")
    return min(fit, key=distance)


@functools.lru_cache(maxsize=4)
def _shipped_games(folder: Path) -> dict[str, list[Game]]:
    """Returns the games that each network of `weight_files.FOLDER` trained on."""
    found = {}
    for name in weight_files.shipped_names():
        config, _ = weight_files.read_header(folder / f"{name}{weight_files.ENDING}")
        found[name] = [make_game(board) for board in config.boards]
    return found


def node_kinds(games: Iterable[Game]) -> set[int]:
    """Returns the kinds of nodes that occur on these boards."""
    return {kind for game in games for kind in game.topology.node_kinds.tolist()}
