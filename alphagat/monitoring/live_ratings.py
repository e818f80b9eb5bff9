"""Ratings of a run in progress, from the scores of all its evaluations so far."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from alphagat.config import Config
from alphagat.evaluation.ratings import PairResult, linked, rate
from alphagat.monitoring import rating_curve
from alphagat.monitoring.rating_curve import Rated, player_name, rated_players
from alphagat.opponents import PREVIOUS
from alphagat.runs.atomic_files import move_if_wrong_type
from alphagat.runs.metrics import ELO, NUM_GAMES, PREVIOUS_ITERATION, RESULTS, WIN_RATE, Line, Result, read_metrics

CURVE_FILE = "elo.svg"
NUM_RESAMPLES = 400


class LiveRatings:
    """Rates all evaluated networks and their opponents after each evaluation, and redraws the curve.

    All ratings derive from `metrics.jsonl`, so resuming gives the same ratings as an uninterrupted run. The anchor,
    rated 0, is `random`; if the run does not play it, the initial network, or else the alphabetically first opponent.
    """

    def __init__(self, folder: Path, config: Config):
        """Reads the evaluations so far. Lines after the restored checkpoint must already be removed.

        `notes` says if something else was in the place of the curve, and where it is now.
        """
        self._folder, self._boards = folder, config.boards
        self.notes = move_if_wrong_type(folder / CURVE_FILE, Path.is_file)
        lines = read_metrics(folder)
        self._lines: dict[int, Line] = {  # the last may get its evaluation late
            line["iteration"]: line for line in lines if RESULTS in line or line is lines[-1]
        }

    def add(self, line: Line) -> list[Result]:
        """Takes the line of an iteration with an evaluation, or its evaluation alone if the line was read before;
        returns the rating of its network on each board.

        A network has no rating if no chain of matches connects it to the anchor, or if the game has one player.
        """
        number = line["iteration"]
        self._lines[number] = {**self._lines.get(number, {}), **line}  # may replace an evaluation that was not saved
        evaluated = [each for each in self._lines.values() if RESULTS in each]
        curves, results = {}, []
        for board in self._boards:
            players = rate_evaluations(evaluated, board)
            now = [each for each in players if each.iteration == number]
            results += [Result(ELO, board, each.elo, each.low, each.high) for each in now]
            if any(each.iteration for each in players):
                curves[board] = players
        if curves:
            title = f"{', '.join(curves)}: Elo, from the matches during training"
            rating_curve.draw(self._folder / CURVE_FILE, curves, title)
        return results


def rate_evaluations(lines: Sequence[Line], board: str) -> list[Rated]:
    """Returns the rated players of all evaluations; empty if no network played.

    Args:
      lines: lines of `metrics.jsonl` with an evaluation, oldest first.
      board: board whose matches count.
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
        before = line.get(PREVIOUS_ITERATION, before)  # differs if the line before was damaged
        for result in line[RESULTS]:
            if result.name == WIN_RATE and result.board == board and result.opponent and math.isfinite(result.value):
                opponent = player_name(before) if result.opponent == PREVIOUS else result.opponent
                player = player_name(line["iteration"])
                yield PairResult.of_score(player, opponent, result.value, int(line[NUM_GAMES]))
        before = line["iteration"]
