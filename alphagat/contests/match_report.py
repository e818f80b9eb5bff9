"""Describes the result of a match: as a table, and as one line."""

import math

import numpy as np
from rich.table import Table
from rich.text import Text

from alphagat.evaluation.match_result import MatchResult
from alphagat.evaluation.single_player import Scores
from alphagat.evaluation.sprt import Sprt
from alphagat.evaluation.statistics import MAX_ELO, elo_difference
from alphagat.games.base import Game
from alphagat.monitoring.catalogue import points
from alphagat.wording import counted


def match_table(game: Game, names: tuple[str, str], result: MatchResult) -> Table:
    """Tabulates the result from the first player's view, with 95% intervals."""
    low, high = result.interval
    first, second = result.score_by_colour
    table = Table(title=f"{game.name}, {result.num_games} games", show_header=False, title_justify="left")
    table.add_row("player", Text(names[0]))
    table.add_row("against", Text(names[1]))
    table.add_row("won, drawn, lost", f"{result.wins}, {result.draws}, {result.losses}")
    table.add_row("score", f"{result.score:.1%} (95% interval {result.interval_text})")
    table.add_row("Elo difference", f"{elo_text(result.score)} ({elo_text(low)} to {elo_text(high)})")
    table.add_row("moving first, second", f"{first:.1%}, {second:.1%}")
    table.add_row("plies after the opening", f"{result.mean_plies:.0f}")
    return table


def elo_text(score: float) -> str:
    """Formats the Elo difference with the expected score `score`; the sign ≥ or ≤ marks a clipped one."""
    value = elo_difference(score)
    clipped = "≥" if value >= MAX_ELO else "≤" if value <= -MAX_ELO else ""
    return f"{clipped}{value:+z.0f}"


def solo_table(game: Game, names: tuple[str, str], scores: tuple[Scores, Scores]) -> Table:
    """Tabulates the mean scores of two players in a one-player game, with 95% intervals."""
    num_games = len(scores[0].scores)
    table = Table(title=f"{game.name}, {num_games} games each", show_header=False, title_justify="left")
    for title, name, each in zip(("player", "against"), names, scores):
        low, high = each.interval
        table.add_row(title, Text(name))
        table.add_row("mean score", f"{points(each.mean)} (95% interval {points(low)} to {points(high)})")
        table.add_row("plies per game", f"{each.plies.mean():.0f}")
        if shares := each.shares():
            cells = ", ".join(f"{number:,}: {share:.1%}" for number, share in shares.items())
            table.add_row(f"{game.achievement_name}, at least", cells)
    table.add_row("ratio of scores", _ratio(scores))
    return table


def notes(names: tuple[str, str], result: MatchResult, test: Sprt | None) -> list[str]:
    """Lists the games that were forfeited, and the verdict of the sequential test."""
    lines = []
    for name, lost in zip(names, (result.outcomes < 0, result.outcomes > 0)):
        reasons, counts = np.unique(result.forfeits[lost & (result.forfeits != "")], return_counts=True)
        for reason, count in zip(reasons, counts):
            lines.append(f"{name} forfeited {counted(count, 'game')}: {reason}")
    if test is not None:
        is_open = test.verdict == "undecided"
        verdict = test.verdict if is_open else f"{test.elo1:+g} Elo {test.verdict}, against {test.elo0:+g}"
        lines.append(
            f"SPRT: {verdict}, after {result.num_games} games, log likelihood ratio {test.llr:.2f} "
            f"({test.lower:.2f} rejects, {test.upper:.2f} accepts)"
        )
    return lines


def match_line(game: Game, names: tuple[str, str], result: MatchResult) -> str:
    """Summarises the result of A in one line."""
    first, second = result.score_by_colour
    return (
        f"{game.name}, {names[0]} against {names[1]}: score {result.score:.1%} "
        f"(95% interval {result.interval_text}; moving first {first:.1%}, second {second:.1%}), "
        f"{result.wins} won, {result.draws} drawn, {result.losses} lost of {result.num_games} games"
    )


def solo_line(game: Game, names: tuple[str, str], scores: tuple[Scores, Scores]) -> str:
    """Summarises the scores of two players in a one-player game, in one line."""
    (low_a, high_a), (low_b, high_b) = (each.interval for each in scores)
    return (
        f"{game.name}, {names[0]}: mean score {points(scores[0].mean)} "
        f"(95% interval {points(low_a)} to {points(high_a)}); "
        f"{names[1]}: {points(scores[1].mean)} ({points(low_b)} to {points(high_b)}); "
        f"ratio {_ratio(scores)}, {len(scores[0].scores)} games each"
    )


def _ratio(scores: tuple[Scores, Scores]) -> str:
    ratio = scores[0].ratio_to(scores[1])
    return "undefined" if math.isnan(ratio) else f"{ratio:.3g}"
