"""Game files: PGN for chess, SGF for every other board."""

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np

from alphagat.errors import UserError
from alphagat.evaluation.game_formats import limits
from alphagat.evaluation.game_formats.record import GameRecord
from alphagat.evaluation.match_result import MatchResult
from alphagat.evaluation.move_names import replay
from alphagat.evaluation.openings import Openings
from alphagat.games.base import Game

CHESS = "chess"
PGN_START = re.compile(r"(?:\s|[%;].*)*+(?:\[|1\s*\.)")  # comment lines, then a tag or, without tags, the first move


def records_of(game: Game, names: tuple[str, str], openings: Openings, result: MatchResult) -> list[GameRecord]:
    """Returns the records of a match; the two games of an opening are adjacent."""
    records = []
    for colour in range(2):
        histories = replay(game, np.concatenate([openings.actions, result.actions[colour]], axis=1))
        for row, history in enumerate(histories):
            records.append(
                GameRecord(
                    board=game.name,
                    names=(names[colour], names[1 - colour]),
                    moves=tuple(history.moves),
                    players=tuple(history.players),
                    outcome=int(np.sign(result.outcomes[colour, row])) * (1, -1)[colour],
                    forfeit=str(result.forfeits[colour, row]),
                )
            )
    half = len(records) // 2
    return [records[colour * half + row] for row in range(half) for colour in range(2)]


def file_ending(game: Game) -> str:
    return ".pgn" if game.name == CHESS else ".sgf"


def check_installed(game: Game) -> None:
    """Raises UserError if the package for the files of this game is missing."""
    _format(file_ending(game)[1:])


def to_text(record: GameRecord) -> str:
    """Returns one game as PGN (chess) or SGF; a file is a concatenation of games.

    Raises:
      UserError: the package for this format is not installed.
    """
    return _format("pgn" if record.board == CHESS else "sgf").write(record)


def read_games(text: str, board: str = "", most: int | None = None) -> list[GameRecord]:
    """Reads games written by `to_text` or another program.

    Args:
      board: the board of games whose file does not name one; `to_text` always does.
      most: the number of games to read, the first ones; None: all.

    Raises:
      UserError: the text is neither PGN nor SGF, a game is on no known board or does not begin at the initial position,
        a limit of `game_formats.limits` is exceeded, or the package for the format is not installed.
    """
    text = text.lstrip("\ufeff")  # the mark with which some editors begin a file
    return _format("pgn").read(text, most) if PGN_START.match(text) else _format("sgf").read(text, board, most)


def read_file(file: Path, board: str = "") -> list[GameRecord]:
    """Reads the games of a file, as `read_games`. Raises UserError, also if the file is too large or unreadable."""
    try:
        with file.open("rb") as stream:
            data = stream.read(limits.MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"it cannot be read: {error.strerror}") from error
    limits.check(len(data), limits.MAX_BYTES, "bytes", "split the file")
    return read_games(data.decode(errors="replace"), board)


def _format(name: str) -> Any:
    try:
        return importlib.import_module(f"alphagat.evaluation.game_formats.{name}")
    except ImportError as error:
        package = str(error.name).partition(".")[0]
        raise UserError(
            f"these game files need {package}, which is not installed: pip install 'alphagat[engines]'"
        ) from error
