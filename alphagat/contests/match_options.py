"""The options of `alphagat match`, and their checks."""

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path

from alphagat.contests.contenders import EngineLimits, options_of
from alphagat.errors import UserError
from alphagat.evaluation.game_files import check_installed, file_ending
from alphagat.games.base import Game
from alphagat.games.states import moves_determine_positions
from alphagat.runs.atomic_files import check_new

SPRT_PART = 32  # openings between two tests
TWO_PLAYER_OPTIONS = ("opening_plies", "sprt", "out", "games_at_once")
PLAYER_OPTIONS = {
    "simulations": "a trained player",
    "symmetries": "a trained player of AlphaGAT",
    "move_seconds": "a program (gtp or uci)",
    "move_nodes": "a UCI engine",
    "engine_option": "a UCI engine",
}


@dataclasses.dataclass(frozen=True)
class MatchOptions:
    """The arguments of `alphagat match`, named like its flags; its help describes them.

    Attributes:
      a: the player whose score is reported.
      b: its opponent.
      simulations: one number for both players, or one for each.
      symmetries: as `simulations`.
    """

    a: str
    b: str
    board: str | None
    games: int | None
    opening_plies: int | None
    games_at_once: int | None
    seed: int
    simulations: tuple[int, ...] | None
    symmetries: tuple[int, ...] | None
    sprt: tuple[float, float] | None
    out: str | None
    move_seconds: float | None
    move_nodes: int | None
    engine_option: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Settings:
    """The settings of a match between two players.

    Attributes:
      num_games: an even number; None: `match.DEFAULT_GAMES`, or two games of each opening with `opening_plies`.
      seed: of the openings and the players.
      opening_plies: start from all distinct openings of this many plies; None: from a draw of distinct openings.
      part_size: openings played at once; None: chosen by the kind of player.
      sprt: Elo differences (elo0, elo1) of a sequential test that may end the match.
      out: a new file for the games.
    """

    num_games: int | None
    seed: int
    opening_plies: int | None = None
    part_size: int | None = None
    sprt: tuple[float, float] | None = None
    out: Path | None = None


def read_settings(options: MatchOptions, game: Game) -> Settings:
    """Checks the options against each other and the board. Raises UserError."""
    if game.num_players == 1:
        for name in TWO_PLAYER_OPTIONS:
            if getattr(options, name) is not None:
                raise UserError(f"--{name}: {game.name} is a game for one player; leave this option out")
    if options.opening_plies is not None and options.opening_plies >= game.max_plies:
        longest = f"{game.max_plies}, the longest game of {game.name}"
        raise UserError(f"--opening_plies {options.opening_plies}: it must be below {longest}")
    part_size = (options.games_at_once or 0) // 2 or (SPRT_PART if options.sprt else None)
    out = None if options.out is None else Path(options.out)
    if out is not None:
        if not moves_determine_positions(game):
            raise UserError(
                f"--out: {game.name} has chance or a random first position, which game files do not hold; leave this "
                "option out"
            )
        check_installed(game)
        check_new(out, file_ending(game))
    return Settings(options.games, options.seed, options.opening_plies, part_size, options.sprt, out)


def read_limits(options: MatchOptions) -> EngineLimits:
    """Checks the options of the players. Raises UserError, also for an option or a number that no player uses."""
    values = {}
    for option in options.engine_option:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise UserError(f"--engine_option {option}: write NAME=VALUE, such as 'Skill Level=0'")
        values[name] = value
    used = {*options_of(options.a), *options_of(options.b)}
    for name, user in PLAYER_OPTIONS.items():
        if getattr(options, name) and name not in used:
            raise UserError(f"--{name}: neither {options.a} nor {options.b} is {user}; leave this option out")
    for option, player in itertools.product(("simulations", "symmetries"), (options.a, options.b)):
        numbers = getattr(options, option) or ()
        if len(numbers) == 2 and option not in options_of(player):
            given = f"--{option} {','.join(map(str, numbers))}"
            raise UserError(f"{given}: {player} is not {PLAYER_OPTIONS[option]}; give one number")
    kinds = {name.partition(":")[0] for name in (options.a, options.b)}
    if options.move_seconds and options.move_nodes and "gtp" not in kinds:
        raise UserError("--move_seconds: UCI engines follow --move_nodes instead; leave one of the two out")
    return EngineLimits(options.move_seconds or EngineLimits.seconds, options.move_nodes, values)
