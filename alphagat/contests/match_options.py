"""Checks the options of `python -m alphagat.match`."""

import argparse
import dataclasses
from pathlib import Path

from alphagat.contests.contenders import EngineLimits
from alphagat.errors import UserError
from alphagat.evaluation.game_files import file_ending
from alphagat.games.base import Game
from alphagat.runs.atomic_files import check_new

SPRT_PART = 32  # openings between two tests
TWO_PLAYER_OPTIONS = ("opening_plies", "sprt", "out", "games_at_once")


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


def read_settings(options: argparse.Namespace, game: Game) -> Settings:
    """Checks the options against each other and the board. Raises UserError."""
    if game.num_players == 1:
        for name in TWO_PLAYER_OPTIONS:
            if getattr(options, name) is not None:
                raise UserError(f"--{name}: {game.name} is a game for one player; leave this option out")
    at_once, sprt = options.games_at_once, _sprt_bounds(options.sprt)
    if at_once is not None and (at_once < 2 or at_once % 2):
        raise UserError(
            f"--games_at_once {at_once}: it must be an even number of at least 2, two games of each opening"
        )
    if options.opening_plies is not None and options.opening_plies < 0:
        raise UserError(f"--opening_plies {options.opening_plies}: it must be 0 or more")
    part_size = (at_once or 0) // 2 or (SPRT_PART if sprt else None)
    out = None if options.out is None else Path(options.out)
    if out is not None:
        check_new(out, file_ending(game))
    return Settings(options.games, options.seed, options.opening_plies, part_size, sprt, out)


def read_limits(options: argparse.Namespace) -> EngineLimits:
    """Checks the options of engines. Raises UserError."""
    if not 0 < options.move_seconds <= 3600:
        raise UserError(f"--move_seconds {options.move_seconds:g}: it must be more than 0, at most 3600")
    if options.move_nodes is not None and options.move_nodes < 1:
        raise UserError(f"--move_nodes {options.move_nodes}: it must be at least 1")
    values = {}
    for option in options.engine_option:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise UserError(f"--engine_option {option}: write NAME=VALUE, such as 'Skill Level=0'")
        values[name] = value
    return EngineLimits(options.move_seconds, options.move_nodes, values)


def read_simulations(text: str | None) -> tuple[int | None, int | None]:
    """Parses `N` or `N,M`: simulations per move of A and B. Raises UserError."""
    if text is None:
        return None, None
    words = text.split(",")
    if len(words) > 2 or not all(word.isascii() and word.isdigit() and int(word) > 0 for word in words):
        raise UserError(f"--simulations {text}: it must be a number of at least 1, or two, for A and B, such as 64,256")
    return int(words[0]), int(words[-1])


def _sprt_bounds(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        elo0, elo1 = (float(word) for word in text.split(","))
    except ValueError:
        elo0 = elo1 = 0.0
    if not -1000 <= elo0 < elo1 <= 1000:
        raise UserError(f"--sprt {text}: it must be two Elo differences, the smaller first, such as --sprt 0,30")
    return elo0, elo1
