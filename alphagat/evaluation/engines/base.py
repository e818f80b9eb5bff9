"""The interface of engines: host players that move in one position at a time."""

import abc
import re
import typing
from collections.abc import Sequence
from typing import Literal

from alphagat.bounds import shown
from alphagat.evaluation.live_game import Position

# Reasons for which an engine loses a game other than by the rules.
Forfeit = Literal["resigned", "illegal move", "timed out", "died", "refused"]
FORFEITS: tuple[str, ...] = typing.get_args(Forfeit)
MOST_LINES = 3  # of an engine's output in a message


class EngineError(Exception):
    """An engine failed and forfeits the current game.

    Attributes:
      end: the reason.
    """

    def __init__(self, end: Forfeit, message: str):
        """`message` is one line that includes the last output of the engine, if any."""
        super().__init__(message)
        self.end: Forfeit = end


class Engine(abc.ABC):
    """A host player that moves in one position at a time.

    Attributes:
      name: shown in reports.
    """

    name: str

    @abc.abstractmethod
    def choose(self, position: Position) -> int:
        """Returns a legal action. After an `EngineError`, the next call restarts the engine if necessary.

        Raises:
          EngineError: the engine gave no legal action.
        """

    def close(self) -> None:  # noqa: B027
        """Releases the engine's resources; idempotent."""

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def last_lines(lines: Sequence[str]) -> str:
    """Joins the last `MOST_LINES` non-empty lines of output into one line, each as by `in_one_line`."""
    said = [line for line in map(in_one_line, lines) if line][-MOST_LINES:]
    return " | ".join(said) if said else "nothing"


def in_one_line(text: str) -> str:
    """Returns the output of an engine for a message: in one line, and cut if it is long.

    Control characters become spaces: a carriage return would hide the message on a terminal.
    """
    return shown(re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", text).strip())
