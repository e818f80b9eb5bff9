"""Ratings of a running run, from the scores of all its evaluations so far."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from alphagat.config import Config
from alphagat.evaluation.ratings import PairResult, linked, rate
from alphagat.monitoring import rating_curve
from alphagat.monitoring.rating_curve import Rated, player_name, rated_players
from alphagat.runs.metrics import ELO, NUM_GAMES, RESULTS, WIN_RATE, Line, Result, read_metrics

PREVIOUS = "previous"
NUM_RESAMPLES = 400


class LiveRatings:
    """Rates the networks of all evaluations and their opponents again after each evaluation, and draws the curve.

    All is derived from `metrics.jsonl`, so a resumed run has the ratings that it would have had. `random` is rated 0;
    in a run that does not play it, the network that the run started from, or else the first opponent by name.
    """

    def __init__(self, folder: Path, config: Config):
        """Reads the evaluations so far; what a killed run wrote beyond its checkpoint must be gone from the file."""
        self._folder, self._boards = folder, config.boards
        self._lines: list[Line] = [line for line in read_metrics(folder) if RESULTS in line]

    def add(self, line: Line) -> list[Result]:
        """Takes the line of an iteration with an evaluation; returns the rating of its network on each board.

        A network that no chain of matches links to the player rated 0 has no rating; nor do single-player games.
        """
        self._lines.append(line)
        curves, results = {}, []
        for board in self._boards:
            players = rate_evaluations(self._lines, board)
            now = [each for each in players if each.iteration == line["iteration"]]
            results += [Result(ELO, board, each.elo, each.low, each.high) for each in now]
            if any(each.iteration for each in players):
                curves[board] = players
        if curves:
            rating_curve.draw(self._folder, curves, f"{', '.join(curves)}: Elo, from the matches during training")
        return results


def rate_evaluations(lines: Sequence[Line], board: str) -> list[Rated]:
    """Returns the players of all evaluations, rated; none where no network played.

    Args:
      lines: those of `metrics.jsonl` with an evaluation, oldest first.
      board: whose matches count.
    """
    pair_results = list(_pair_results(lines, board))
    names = {name for each in pair_results for name in (each.player, each.opponent)}
    if not names:
        return []
    fixed = sorted(names - {each.player for each in pair_results} - {player_name(0)})
    anchor = next(name for name in ("random", player_name(0), *fixed) if name in names)
    return rated_players(rate(linked(pair_results, anchor), anchor, NUM_RESAMPLES), lines)


def _pair_results(lines: Sequence[Line], board: str) -> Iterable[PairResult]:
    before = 0
    for line in lines:
        for result in line[RESULTS]:
            if result.name == WIN_RATE and result.board == board and result.opponent and math.isfinite(result.value):
                opponent = player_name(before) if result.opponent == PREVIOUS else result.opponent
                player = player_name(line["iteration"])
                yield PairResult.of_score(player, opponent, result.value, int(line[NUM_GAMES]))
        before = line["iteration"]
