"""Time for a move, from what a controller tells of the clock."""

import dataclasses

LAG_SECONDS = 0.05  # between our clock and the controller's, for each move
LAG_SHARE = 0.05
MIN_SECONDS = 0.01
MOVES_LEFT = (8, 40)  # the fewest and the most that a player's main time is shared among


@dataclasses.dataclass
class Clock:
    """What one player has left: main time, then overtime.

    Attributes:
      main: seconds.
      overtime: seconds for `moves` moves, again and again; 0 for none.
      moves: at least 1.
    """

    main: float
    overtime: float = 0.0
    moves: int = 1

    def seconds_for_move(self, plies_left: int) -> float:
        """Returns how long to think: an equal share of the main time and of overtime, less what is lost on the way.

        Args:
          plies_left: until the longest game ends; a quarter of them, within limits, are taken for own moves to come.
        """
        fewest, most = MOVES_LEFT
        share = self.main / min(max(plies_left // 4, fewest), most) + self.overtime / self.moves
        return less_lag(share)

    def spend(self, seconds: float) -> None:
        """Takes off what a move has cost; overtime is told anew by who runs the clock."""
        self.main = max(0.0, self.main - seconds)


def less_lag(seconds: float) -> float:
    """Returns what is left of the time for one move after what is lost on the way."""
    return max(MIN_SECONDS, seconds * (1 - LAG_SHARE) - LAG_SECONDS)


def seconds_with_increment(left: float, increment: float, moves_to_go: int | None, plies_left: int) -> float:
    """Returns how long to think where each move adds to the clock once it is made.

    Args:
      left: seconds on the clock now; never more than these.
      moves_to_go: until the clock is filled again; None: the rest of the game.
      plies_left: as in `Clock.seconds_for_move`.
    """
    fewest, most = MOVES_LEFT
    num_moves = moves_to_go or min(max(plies_left // 4, fewest), most)
    return less_lag(min(left / num_moves + increment, left))
