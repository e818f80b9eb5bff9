"""Formats an analysis, move by move, for GTP, UCI and JSON lines."""

import math
from typing import Any, NamedTuple

import numpy as np

from alphagat.agents.analysis import Analysis
from alphagat.evaluation.live_game import line_names
from alphagat.games.base import Game
from alphagat.serving.protocols.gtp_names import vertex


class MoveReport(NamedTuple):
    """Describes one visited move.

    Attributes:
      name: its action name.
      visits: number of simulations.
      value: in [-1, 1], for the player to move.
      prior: the network's prior, in [0, 1].
      order: rank: 0 for the move to play, the others by visits.
      line: names of the variation that starts with this move.
    """

    name: str
    visits: int
    value: float
    prior: float
    order: int
    line: tuple[str, ...]


def ranked_moves(game: Game, state: Any, analysis: Analysis) -> list[MoveReport]:
    """Returns the visited moves of one position (an `Analysis` without `[B]`); the first is the move to play.

    Without simulations, the list holds only that move, with the network's value.
    """
    visited = np.flatnonzero(analysis.visits)
    values = np.nan_to_num(analysis.action_values, nan=float(analysis.value))
    actions = sorted(visited.tolist() or [int(analysis.action)], key=lambda a: (-analysis.visits[a], -values[a], a))
    actions.remove(int(analysis.action))
    reports = []
    for order, action in enumerate([int(analysis.action), *actions]):
        line = tuple(line_names(game, state, analysis.variations[action]))
        visits, prior = int(analysis.visits[action]), float(analysis.prior[action])
        reports.append(MoveReport(line[0], visits, float(values[action]), prior, order, line))
    return reports


def winrate(value: float) -> float:
    """Converts a value in [-1, 1] to an expected score in [0, 1]; a draw counts 0.5."""
    return min(max((1 + value) / 2, 0.0), 1.0)


def gtp_info(dialect: str, game: Game, move: MoveReport) -> str:
    """Formats one move for `lz-analyze` (winrate and prior in units of 1/10,000) or `kata-analyze`."""
    line = " ".join(vertex(game, name) for name in move.line)
    rate, prior = winrate(move.value), move.prior
    if dialect == "lz":
        numbers = f"winrate {round(10000 * rate)} prior {round(10000 * prior)}"
    else:
        numbers = f"utility {move.value:.6f} winrate {rate:.6f} prior {prior:.6f}"
    return f"info move {vertex(game, move.name)} visits {move.visits} {numbers} order {move.order} pv {line}"


def centipawns(value: float) -> int:
    """Converts a value in [-1, 1] to UCI centipawns: 100 tan(pi / 2 value), clipped to +-12,800."""
    return round(max(-12800.0, min(12800.0, 100 * math.tan(math.pi / 2 * max(-0.9999, min(0.9999, value))))))
