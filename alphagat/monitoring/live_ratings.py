"""Ratings of a running run, from the scores of all its evaluations so far."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from alphagat.config import Config
from alphagat.evaluation.ratings import PairResult, linked, rate
from alphagat.monitoring import rating_curve
from alphagat.monitoring.rating_curve import Rated, player_name, rated_players
from alphagat.runs.metrics import read_metrics

NUM_GAMES, PREVIOUS = "eval/num_games", "previous"
NUM_RESAMPLES = 400
Line = Mapping[str, Any]


class LiveRatings:
    """Rates the networks of all evaluations and their opponents anew after each evaluation, and draws the curve.

    All is derived from `metrics.jsonl`, so a resumed run has the ratings that it would have had. `random` is rated 0;
    in a run that does not play it, the network that the run started from, or else the first opponent by name.
    """

    def __init__(self, folder: Path, config: Config):
        """Reads the evaluations so far; what a killed run wrote beyond its checkpoint must be gone from the file."""
        self._folder, self._boards = folder, config.boards
        self._lines: list[Line] = [line for line in read_metrics(folder) if is_evaluation(line)]

    def add(self, line: Line) -> dict[str, float]:
        """Takes the line of an iteration with an evaluation; returns `eval/elo` and its interval, `_low` and `_high`.

        With several boards each has its own, `eval/hex:7/elo`. A network that no chain of matches links to the player
        that is rated 0 has none; nor has a game for one player.
        """
        self._lines.append(line)
        curves, metrics = {}, {}
        for board in self._boards:
            players = rate_evaluations(self._lines, board if len(self._boards) > 1 else None)
            name = f"eval/{board}/elo" if len(self._boards) > 1 else "eval/elo"
            for each in players:
                if each.iteration == line["iteration"]:
                    metrics |= {name: each.elo, f"{name}_low": each.low, f"{name}_high": each.high}
            if any(each.iteration for each in players):
                curves[board] = players
        if curves:
            rating_curve.draw(self._folder, curves, f"{', '.join(curves)}: Elo, from the matches during training")
        return metrics


def is_evaluation(line: Line) -> bool:
    return any(name.startswith("eval/") for name in line)


def rate_evaluations(lines: Sequence[Line], board: str | None) -> list[Rated]:
    """Returns the players of all evaluations, rated; none where no network played.

    Args:
      lines: those of `metrics.jsonl` with an evaluation, oldest first.
      board: whose matches count; None: of the only one.
    """
    pair_results = list(_pair_results(lines, board))
    names = {name for each in pair_results for name in (each.player, each.opponent)}
    if not names:
        return []
    fixed = sorted(names - {each.player for each in pair_results} - {player_name(0)})
    anchor = next(name for name in ("random", player_name(0), *fixed) if name in names)
    return rated_players(rate(linked(pair_results, anchor), anchor, NUM_RESAMPLES), lines)


def _pair_results(lines: Sequence[Line], board: str | None) -> Iterable[PairResult]:
    prefix = "eval/" if board is None else f"eval/{board}/"
    pattern = re.compile(re.escape(prefix) + r"vs_(.+)/win_rate")
    before = 0
    for line in lines:
        for name, score in line.items():
            match = pattern.fullmatch(name)
            if match and score is not None:
                opponent = player_name(before) if match[1] == PREVIOUS else match[1]
                yield PairResult.of_score(player_name(line["iteration"]), opponent, score, int(line[NUM_GAMES]))
        before = line["iteration"]
