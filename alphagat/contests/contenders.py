"""Players by the names that commands take: trained networks, engines, and the fixed players of `evaluation`.

To add a kind of player, add it to `KINDS` and `make_contender`, or to `opponents.OPPONENTS` if it runs on the devices.
"""

import dataclasses
from pathlib import Path
from typing import NamedTuple

from alphagat.agents import sources
from alphagat.agents.agent import load
from alphagat.errors import UserError
from alphagat.evaluation.engines.base import Engine
from alphagat.evaluation.engines.gtp import GtpEngine
from alphagat.evaluation.engines.solver import SOLVER_BOARDS, SolverEngine
from alphagat.evaluation.engines.uci import UciEngine
from alphagat.evaluation.pgx_model import pgx_model_player
from alphagat.evaluation.players import Player, make_opponent
from alphagat.games.base import Game
from alphagat.opponents import OPPONENTS


@dataclasses.dataclass(frozen=True)
class EngineLimits:
    """Limits and options of engines.

    Attributes:
      seconds: the most seconds per move.
      nodes: search nodes per move of a UCI engine, in place of seconds; None: no limit.
      options: options of UCI engines, by name.
    """

    seconds: float = 1.0
    nodes: int | None = None
    options: dict[str, str] = dataclasses.field(default_factory=dict)


class Kind(NamedTuple):
    """A kind of player: how to write its name, the options of `alphagat match` that it uses, and an example."""

    usage: str
    options: tuple[str, ...] = ()
    example: str = ""


KINDS = {each.usage.partition(":")[0]: Kind(each.usage) for each in OPPONENTS} | {
    "gtp": Kind("gtp:COMMAND", ("move_seconds",), "gtp:'gnugo --mode gtp'"),
    "uci": Kind("uci:COMMAND", ("move_seconds", "move_nodes", "engine_option"), "uci:stockfish"),
    "pgx": Kind("pgx:FILE", ("simulations",), "pgx:connect_four_v0.stablehlo"),
}


def make_contender(
    game: Game, name: str, num_simulations: int | None, limits: EngineLimits, seed: int, symmetries: int = 1
) -> Player | Engine:
    """Makes the player called `name`.

    Args:
      num_simulations: per move of a trained player; None: the number in its run's own evaluations, or no search for a
        Pgx model.
      seed: decides between equally good moves of an exact solver.
      symmetries: of the evaluations of a trained player.

    Raises:
      UserError: there is no such player, or it does not play the board.
    """
    kind = name.partition(":")[0]
    if kind == "gtp":
        return GtpEngine(game, _argument_of(name), limits.seconds)
    if kind == "uci":
        return UciEngine(game, _argument_of(name), limits.seconds, limits.nodes, limits.options)
    if kind == "pgx":
        return pgx_model_player(game, Path(_argument_of(name)), num_simulations)
    if name == "solver" and game.name in SOLVER_BOARDS:
        return SolverEngine(game, seed)
    if kind in KINDS:
        return make_opponent(game, name)
    if sources.is_source(name):
        return load(name, board=game.name, symmetries=symmetries).player(num_simulations)
    raise _unknown(name)


def options_of(name: str) -> tuple[str, ...]:
    """Returns the options of `alphagat match` that the player called `name` uses."""
    kind = KINDS.get(name.partition(":")[0])
    return ("simulations", "symmetries") if kind is None else kind.options  # any other name is that of a trained player


def default_board(*names: str) -> str | None:
    """Returns the first board of the first trained player in `names`; None if there is none.

    Raises:
      UserError: there is no player of one of the names.
    """
    trained = [name for name in names if name != sources.SHIPPED and name.partition(":")[0] not in KINDS]
    for name in trained:
        if not sources.is_source(name):
            raise _unknown(name)
    return sources.resolve(trained[0]).config.boards[0] if trained else None


def _unknown(name: str) -> UserError:
    usages = ", ".join(each.usage for each in KINDS.values())
    return UserError(
        f"player {name!r}: there is no such player or folder; use {sources.USAGES}, hex or another network of the "
        f"package, {usages}"
    )


def _argument_of(name: str) -> str:
    """Returns what follows the colon, a command or a file."""
    kind, _, argument = name.partition(":")
    if not argument.strip():
        known = KINDS[kind]
        missing = "file" if known.usage.endswith("FILE") else "program"
        raise UserError(f"player {name!r}: it names no {missing}; use {known.usage}, such as {known.example}")
    return argument
