"""Allocates time to moves, given the state of the controller's clock."""

import dataclasses

LAG_SECONDS = 0.05  # per move, between our clock and the controller's, unless the controller sets it
LAG_SHARE = 0.05
MIN_SECONDS = 0.01
MOVES_LEFT = (8, 40)  # least and most number of moves that share a player's main time


@dataclasses.dataclass
class Clock:
    """Holds one player's remaining time: main time, then overtime.

    Attributes:
      main: seconds of main time.
      overtime: seconds per overtime period; 0 for none.
      moves: moves per overtime period, at least 1.
    """

    main: float
    overtime: float = 0.0
    moves: int = 1

    def seconds_for_move(self, plies_left: int) -> float:
        """Returns the seconds for one move: an equal share of main time and overtime, less the lag.

        Args:
          plies_left: plies until the longest possible game ends.
        """
        return less_lag(self.main / moves_left(plies_left) + self.overtime / self.moves)

    def spend(self, seconds: float) -> None:
        """Subtracts the time of a move from main time. The controller keeps track of overtime."""
        self.main = max(0.0, self.main - seconds)


def moves_left(plies_left: int) -> int:
    """Estimates a player's remaining moves: a quarter of the plies left in the game, clipped to `MOVES_LEFT`."""
    fewest, most = MOVES_LEFT
    return min(max(plies_left // 4, fewest), most)


def less_lag(seconds: float, lag: float = LAG_SECONDS) -> float:
    """Returns the seconds for one move, less the lag."""
    return max(MIN_SECONDS, seconds * (1 - LAG_SHARE) - lag)


def seconds_with_increment(
    left: float, increment: float, moves_to_go: int | None, plies_left: int, lag: float = LAG_SECONDS
) -> float:
    """Returns the seconds for one move on a clock with an increment per move; at most `left`.

    Args:
      left: seconds on the clock.
      increment: seconds added after each move.
      moves_to_go: moves until the next time control; None: the rest of the game.
      plies_left: as in `Clock.seconds_for_move`.
      lag: seconds per move between our clock and the controller's.
    """
    return less_lag(min(left / (moves_to_go or moves_left(plies_left)) + increment, left), lag)
