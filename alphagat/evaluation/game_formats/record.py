"""The record of a game, as game files hold it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class GameRecord:
    """One complete game.

    Attributes:
      board: its name.
      names: the names of player 0 and player 1.
      moves: `game.action_name` of each move.
      players: who made each move, 0 or 1.
      outcome: the result for player 0: +1, 0 or -1; None if unknown.
      forfeit: the reason of a loss other than by the rules; else empty.
    """

    board: str
    names: tuple[str, str]
    moves: tuple[str, ...]
    players: tuple[int, ...]
    outcome: int | None
    forfeit: str = ""
