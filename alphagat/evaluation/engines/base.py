"""Games in progress on the host, and the players that take them one at a time: engines and exact solvers."""

import abc
import dataclasses
import typing
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from alphagat.games.base import Game

# How a game ended other than by the rules: by what the engine did, and it lost the game for that.
Forfeit = Literal["resigned", "illegal move", "timed out", "died", "refused"]
FORFEITS: tuple[str, ...] = typing.get_args(Forfeit)


@dataclasses.dataclass(frozen=True, eq=False)
class Position:
    """One game in progress.

    Attributes:
      game: its board.
      state: one state that is not over, with numpy leaves.
      moves: `game.action_name` of each move from the first position on, e.g. `("b3", "c3", "pass")`.
      players: who made each of them, 0 or 1.
    """

    game: Game
    state: Any
    moves: tuple[str, ...]
    players: tuple[int, ...]

    @property
    def player(self) -> int:
        """The player to move."""
        return int(self.state.current_player)

    def legal_actions(self) -> dict[str, int]:
        """Returns the legal actions by the names that a person calls them."""
        actions = np.flatnonzero(self.state.legal_action_mask)
        return dict(zip(self.game.names_of(self.state, actions), actions.tolist()))


class EngineError(Exception):
    """An engine has lost the game that it was asked about.

    Attributes:
      end: what it did.
    """

    def __init__(self, end: Forfeit, message: str):
        """`message` is one line, with the last lines of the engine where it said something."""
        super().__init__(message)
        self.end: Forfeit = end


class Engine(abc.ABC):
    """A player that takes one position at a time.

    Attributes:
      name: how reports call it.
    """

    name: str

    @abc.abstractmethod
    def choose(self, position: Position) -> int:
        """Returns a legal action. After an `EngineError`, the next call starts afresh.

        Raises:
          EngineError: it gave none.
        """

    def close(self) -> None:  # noqa: B027
        """Ends what the engine has started; harmless when called again."""

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def last_lines(lines: Sequence[str], number: int = 3) -> str:
    """Joins the last lines of an engine into one."""
    said = [line.strip() for line in lines if line.strip()][-number:]
    return " | ".join(said) if said else "nothing"
