"""Players by the names that commands take: trained ones, engines, and those of `evaluation`."""

import dataclasses
from pathlib import Path

from alphagat.agents import weight_files
from alphagat.agents.agent import Agent, load
from alphagat.errors import UserError
from alphagat.evaluation.engines.base import Engine
from alphagat.evaluation.engines.gtp import GtpEngine
from alphagat.evaluation.engines.solver import SOLVER_BOARDS, SolverEngine
from alphagat.evaluation.engines.uci import UciEngine
from alphagat.evaluation.pgx_model import pgx_model_player
from alphagat.evaluation.players import Player, make_opponent
from alphagat.games.base import Game
from alphagat.runs.checkpoints import CHECKPOINT_FOLDER
from alphagat.runs.folder import CONFIG_FILE, read_config

KINDS = (
    "a run folder, one of its checkpoints (runs/1/checkpoints/40), a file of alphagat.export, shipped, random, mcts:N, "
    "solver, gtp:COMMAND, uci:COMMAND, pgx:FILE"
)


@dataclasses.dataclass(frozen=True)
class EngineLimits:
    """What engines are given for a move.

    Attributes:
      seconds: at most.
      nodes: of a UCI engine's search, instead of seconds; None: no limit.
      options: of UCI engines, by name.
    """

    seconds: float = 1.0
    nodes: int | None = None
    options: dict[str, str] = dataclasses.field(default_factory=dict)


def make_contender(
    game: Game, name: str, num_simulations: int | None, limits: EngineLimits, seed: int
) -> Player | Engine:
    """Makes the player of that name.

    Args:
      num_simulations: of a trained player; None: as in its run's own evaluations, none of a model of Pgx.
      seed: of an exact player's choice among equal moves.

    Raises:
      UserError: there is no such player, or none for this board.
    """
    kind, _, argument = name.partition(":")
    if kind in ("gtp", "uci") and not argument.strip():
        raise UserError(f"player {name!r}: it names no program; take {kind}:COMMAND, such as gtp:'gnugo --mode gtp'")
    if kind == "gtp":
        return GtpEngine(game, argument, limits.seconds)
    if kind == "uci":
        return UciEngine(game, argument, limits.seconds, limits.nodes, limits.options)
    if kind == "pgx":
        return pgx_model_player(game, Path(argument), num_simulations)
    if name == "solver" and game.name in SOLVER_BOARDS:
        return SolverEngine(game, seed)
    if (agent := load_agent(name, game.name)) is not None:
        return agent.player(num_simulations)
    if kind in ("random", "mcts", "solver"):
        return make_opponent(game, name)
    raise UserError(f"player {name!r}: there is no such folder; take {KINDS}")


def load_agent(name: str, board: str | None) -> Agent | None:
    """Loads the trained player of that name; None where it is another kind of player's.

    Args:
      board: to play; None: the first of its run.

    Raises:
      UserError: it cannot be loaded, or does not play the board.
    """
    if name == "shipped":
        if board is None:
            raise UserError("player 'shipped' needs a board; name one, such as --board hex:5")
        return load(_shipped_for(board), board=board)
    if weight_files.find_file(name) is not None:
        return load(name, board=board)
    run = _run_of(name)
    return None if run is None else load(*run, board)


def board_of(*names: str) -> str | None:
    """Returns the first board of the first trained player among `names`; None where there is none."""
    runs = [run for run in map(_run_of, names) if run is not None]
    return read_config(runs[0][0]).boards[0] if runs else None


def _shipped_for(board: str) -> str:
    """Returns the name of the network of the package that plays a board."""
    name, names = board.partition(":")[0], weight_files.shipped_names()
    if name not in names:
        raise UserError(f"player 'shipped': no network for {board} comes with the package, only {', '.join(names)}")
    return name


def _run_of(name: str) -> tuple[Path, int | None] | None:
    """Returns the run folder and the iteration that a player's name stands for; None where it is no folder."""
    folder = Path(name)
    if not folder.is_dir():
        return None
    if folder.parent.name == CHECKPOINT_FOLDER and folder.name.isdigit():
        return folder.parent.parent, int(folder.name)
    if not (folder / CONFIG_FILE).exists():
        raise UserError(f"player {name!r}: this folder holds no run; take {KINDS}")
    return folder, None
