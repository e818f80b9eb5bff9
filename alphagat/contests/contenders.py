"""Players by the names that commands take: trained networks, engines, and the fixed players of `evaluation`.

To add a kind of player, add a line to `KINDS`, or to `opponents.OPPONENTS` if it runs on the devices.
"""

import dataclasses
from collections.abc import Callable
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


class Request(NamedTuple):
    """The arguments of `make_contender`, with `argument` for the text after the first colon of `name`."""

    game: Game
    name: str
    argument: str
    num_simulations: int | None
    limits: EngineLimits
    seed: int


class Kind(NamedTuple):
    """A kind of player: how to write its name, how to make it, and the options of `alphagat match` that it uses."""

    usage: str
    make: Callable[[Request], Player | Engine]
    options: tuple[str, ...] = ()


def make_contender(
    game: Game, name: str, num_simulations: int | None, limits: EngineLimits, seed: int
) -> Player | Engine:
    """Makes the player called `name`.

    Args:
      num_simulations: per move of a trained player; None: the number in its run's own evaluations, or no search for a
        Pgx model.
      seed: decides between equally good moves of an exact solver.

    Raises:
      UserError: there is no such player, or it does not play the board.
    """
    kind, _, argument = name.partition(":")
    if kind in KINDS:
        return KINDS[kind].make(Request(game, name, argument, num_simulations, limits, seed))
    if sources.is_source(name):
        return load(name, board=game.name).player(num_simulations)
    raise _unknown(name)


def options_of(name: str) -> tuple[str, ...]:
    """Returns the options of `alphagat match` that the player called `name` uses."""
    kind = KINDS.get(name.partition(":")[0])
    return ("simulations",) if kind is None else kind.options  # any other name is that of a trained player


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
    return UserError(f"player {name!r}: there is no such player or folder; use {sources.KINDS}, {usages}")


def _make_opponent(request: Request) -> Player:
    return make_opponent(request.game, request.name)


def _make_solver(request: Request) -> Player | Engine:
    if request.name == "solver" and request.game.name in SOLVER_BOARDS:
        return SolverEngine(request.game, request.seed)
    return _make_opponent(request)


def _make_gtp(request: Request) -> Engine:
    return GtpEngine(request.game, _command_of(request), request.limits.seconds)


def _make_uci(request: Request) -> Engine:
    limits = request.limits
    return UciEngine(request.game, _command_of(request), limits.seconds, limits.nodes, limits.options)


def _make_pgx(request: Request) -> Player:
    return pgx_model_player(request.game, Path(request.argument), request.num_simulations)


def _command_of(request: Request) -> str:
    if not request.argument.strip():
        kind = request.name.partition(":")[0]
        raise UserError(
            f"player {request.name!r}: it names no program; use {kind}:COMMAND, such as gtp:'gnugo --mode gtp'"
        )
    return request.argument


KINDS = {each.usage.partition(":")[0]: Kind(each.usage, _make_opponent) for each in OPPONENTS} | {
    "solver": Kind("solver", _make_solver),
    "gtp": Kind("gtp:COMMAND", _make_gtp, ("move_seconds",)),
    "uci": Kind("uci:COMMAND", _make_uci, ("move_seconds", "move_nodes", "engine_option")),
    "pgx": Kind("pgx:FILE", _make_pgx, ("simulations",)),
}
