"""What `python -m alphagat.match` does with its options."""

import argparse
import contextlib
from pathlib import Path

import jax
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from alphagat.contests.contenders import EngineLimits, board_of, make_contender
from alphagat.errors import UserError
from alphagat.evaluation.engines.base import Engine
from alphagat.evaluation.game_files import file_ending, records_of, to_text
from alphagat.evaluation.match_parts import Series
from alphagat.evaluation.match_result import MatchResult, join
from alphagat.evaluation.openings import Openings, distinct_openings, openings_after
from alphagat.evaluation.players import Player
from alphagat.evaluation.sprt import Sprt, sprt
from alphagat.evaluation.statistics import elo_difference
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.runtime import sharding

DEFAULT_GAMES = 200
SPRT_PART = 32  # openings between two tests


def play(options: argparse.Namespace) -> None:
    """Plays, shows progress on standard error and the result on standard output.

    Raises:
      UserError: an option or a player cannot be had; nothing was played or written.
    """
    check(options)
    bounds, simulations = _sprt_bounds(options.sprt), _simulations(options.simulations)
    board = options.board or board_of(options.a, options.b)
    if board is None:
        raise UserError("--board is missing, and neither player is a run that has one; name one, such as --board hex:5")
    game = make_game(board)
    if game.num_players != 2:
        raise UserError(f"--board {board}: a match needs a game for two; see python -m alphagat.evaluate")
    limits = EngineLimits(options.move_seconds, options.move_nodes, _engine_options(options.engine_option))
    out = _check_out(options.out, game)
    openings = _openings(game, options)
    console, errors = Console(), Console(stderr=True)
    with contextlib.ExitStack() as stack:
        players = []
        for name, count in zip((options.a, options.b), simulations):
            player = make_contender(game, name, count, limits, options.seed)
            players.append(stack.enter_context(player) if isinstance(player, Engine) else player)
        a, b = players
        key, mesh = jax.random.key(options.seed), sharding.make_mesh(0)
        series = Series(game, a, b, openings, key, mesh, lambda line: errors.print(line, markup=False, soft_wrap=True))
        part_size = (options.games_at_once or 0) // 2 or (SPRT_PART if bounds else None)
        names = _names(options, players)
        result, test = _play_parts(series, part_size, names, out, bounds, errors)
    console.print(table(game, names, result))
    for line in summary(names, result, test):
        console.print(line, markup=False, soft_wrap=True)


def _play_parts(
    series: Series,
    part_size: int | None,
    names: tuple[str, str],
    out: Path | None,
    bounds: tuple[float, float] | None,
    console: Console,
) -> tuple[MatchResult, Sprt | None]:
    """Plays until the openings are used up or the test is decided; the games of each part are written at once."""
    parts: list[MatchResult] = []
    test = None
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("games", total=2 * len(series.openings.actions))
        for openings, part in series.play(part_size):
            parts.append(part)
            if out is not None:
                with out.open("a") as file:
                    file.writelines(to_text(record) for record in records_of(series.game, names, openings, part))
            so_far = join(parts)
            progress.update(task, completed=so_far.num_games, description=f"{names[0]}: {so_far.score:.1%}")
            if bounds is not None:
                test = sprt(so_far.pair_scores, *bounds)
                if test.verdict != "undecided":
                    break
    return join(parts), test


def table(game: Game, names: tuple[str, str], result: MatchResult) -> Table:
    """Returns the result of A, with 95% intervals."""
    low, high = result.interval
    first, second = result.score_by_colour
    found = Table(title=f"{game.name}, {result.num_games} games", show_header=False, title_justify="left")
    found.add_row("player", names[0])
    found.add_row("against", names[1])
    found.add_row("won, drawn, lost", f"{result.wins}, {result.draws}, {result.losses}")
    found.add_row("score", f"{result.score:.1%} (95% interval {low:.1%} to {high:.1%})")
    found.add_row("Elo difference", f"{result.elo:+.0f} ({elo_difference(low):+.0f} to {elo_difference(high):+.0f})")
    found.add_row("moving first, second", f"{first:.1%}, {second:.1%}")
    found.add_row("plies per game", f"{result.mean_plies:.0f}")
    return found


def summary(names: tuple[str, str], result: MatchResult, test: Sprt | None) -> list[str]:
    """Says which games were lost other than by the rules, and what the sequential test found."""
    lines = []
    for name, lost in zip(names, (result.outcomes < 0, result.outcomes > 0)):
        ends, counts = np.unique(result.forfeits[lost & (result.forfeits != "")], return_counts=True)
        lines += [f"{name} lost {count} games by this: {end}" for end, count in zip(ends, counts)]
    if test is not None:
        lines.append(
            f"SPRT: {test.verdict} after {result.num_games} games, log likelihood ratio {test.llr:.2f} "
            f"({test.lower:.2f} rejects, {test.upper:.2f} accepts)"
        )
    return lines


def check(options: argparse.Namespace) -> None:
    """Checks the numbers among the options."""
    at_once = options.games_at_once
    if at_once is not None and (at_once < 2 or at_once % 2):
        raise UserError(f"--games_at_once {at_once}: take an even number of at least 2, two games of each opening")
    if options.opening_plies is not None and options.opening_plies < 0:
        raise UserError(f"--opening_plies {options.opening_plies}: take 0 or more")
    if not 0 < options.move_seconds <= 3600:
        raise UserError(f"--move_seconds {options.move_seconds:g}: take more than 0, at most 3600")
    if options.move_nodes is not None and options.move_nodes < 1:
        raise UserError(f"--move_nodes {options.move_nodes}: take at least 1")


def _sprt_bounds(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        elo0, elo1 = (float(word) for word in text.split(","))
    except ValueError:
        elo0 = elo1 = 0.0
    if not -1000 <= elo0 < elo1 <= 1000:
        raise UserError(f"--sprt {text}: take two differences in Elo, the smaller first, such as --sprt 0,30")
    return elo0, elo1


def _simulations(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    words = text.split(",")
    if len(words) > 2 or not all(word.isascii() and word.isdigit() and int(word) > 0 for word in words):
        raise UserError(f"--simulations {text}: take a number of at least 1, or two, for A and B, such as 64,256")
    return int(words[0]), int(words[-1])


def _engine_options(options: list[str]) -> dict[str, str]:
    found = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise UserError(f"--engine_option {option}: write NAME=VALUE, such as 'Skill Level=0'")
        found[name] = value
    return found


def _check_out(name: str | None, game: Game) -> Path | None:
    if name is None:
        return None
    file = Path(name)
    if file.exists():
        raise UserError(f"--out {name}: this file exists, and nothing is overwritten; name a new one")
    if file.suffix != file_ending(game):
        raise UserError(f"--out {name}: games of {game.name} are written as {file_ending(game)}; end the name so")
    if not file.parent.is_dir():
        raise UserError(f"--out {name}: there is no folder {file.parent}; make it first")
    return file


def _openings(game: Game, options: argparse.Namespace) -> Openings:
    num_openings = None if options.games is None else options.games // 2
    if options.opening_plies is not None:
        return openings_after(game, options.opening_plies, options.seed, num_openings)
    return distinct_openings(game, num_openings or DEFAULT_GAMES // 2, options.seed)


def _names(options: argparse.Namespace, players: list[Player | Engine]) -> tuple[str, str]:
    """Returns how the result calls A and B: trained players by what was asked for, too."""
    a, b = (
        player.name if player.name == word else f"{word} ({player.name})"
        for word, player in zip((options.a, options.b), players)
    )
    return a, b
