"""What GTP's commands share: errors, numbers, and analysis in the dialects of Leela Zero and KataGo."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from alphagat.evaluation.live_game import Position
from alphagat.serving.protocols import move_reports
from alphagat.serving.protocols.thinking import Progress

DIALECTS = ("lz", "kata")  # of Leela Zero and KataGo
# KataGo's options of an analysis that change only what is written, each with a value. They are ignored.
OUTPUT_OPTIONS = (
    *("ownership", "ownershipStdev", "movesOwnership", "rootInfo", "minmoves", "maxmoves"),
    *("pvVisits", "pvEdgeVisits", "noResultValue"),
)


class CommandError(Exception):
    """Fails a command; the message, one line, is the answer."""


class AnalysisRequest(NamedTuple):
    """Holds what an analysis command asks for.

    Attributes:
      dialect: `lz` or `kata`.
      interval: seconds between lines.
      position: the position to search.
      player: who makes the best move in the end; None: nobody, and the analysis runs until the next line arrives.
    """

    dialect: str
    interval: float
    position: Position
    player: int | None


def without_output_options(words: Sequence[str]) -> list[str]:
    """Returns the words of an analysis without `OUTPUT_OPTIONS`, their values, and `interval`, which may be omitted."""
    kept, rest = [], iter(words)
    for word in rest:
        if word not in OUTPUT_OPTIONS:
            kept.append(word)
        elif next(rest, None) is None:
            raise CommandError(f"syntax error: {word} has no value")
    return [word for word in kept if word != "interval"]


def analysis_line(dialect: str, position: Position, progress: Progress) -> str:
    """Returns the line that reports the progress of a search, with all moves that it tried."""
    moves = move_reports.ranked_moves(position.game, position.state, progress.read())
    return " ".join(move_reports.gtp_info(dialect, position.game, move) for move in moves)


def to_int(word: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", word):
        raise CommandError(f"syntax error: {word} is not a whole number")
    return int(word)


def to_float(word: str) -> float:
    if not re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{0,9})?", word):
        raise CommandError(f"syntax error: {word} is not a number")
    return float(word)
