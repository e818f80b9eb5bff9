"""Results of a match."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from alphagat.evaluation.engines.base import FORFEITS
from alphagat.evaluation.statistics import paired_interval

FORFEIT_DTYPE = f"<U{max(map(len, FORFEITS))}"


@dataclasses.dataclass(frozen=True, eq=False)
class MatchResult:
    """Results of player A against player B.

    Attributes:
      outcomes: `[2, N]` float32, A's result of each game: +1 win, 0 draw, -1 loss. A is player 0 in row 0 and
        player 1 in row 1 (in most games, the first and the second to move).
      plies: `[2, N]` int32, moves played after the opening.
      actions: `[2, N, T]` int32, those moves; -1 after the last.
      forfeits: `[2, N]` str, the reason of a forfeit (`engines.base.Forfeit`), else empty.
    """

    outcomes: np.ndarray
    plies: np.ndarray
    actions: np.ndarray
    forfeits: np.ndarray

    @property
    def num_games(self) -> int:
        return self.outcomes.size

    @property
    def wins(self) -> int:
        return int((self.outcomes > 0).sum())

    @property
    def draws(self) -> int:
        return int((self.outcomes == 0).sum())

    @property
    def losses(self) -> int:
        return int((self.outcomes < 0).sum())

    @property
    def score(self) -> float:
        """Share of the points in [0, 1]: a win counts 1, a draw 1/2."""
        return (self.wins + self.draws / 2) / self.num_games

    @property
    def score_by_colour(self) -> tuple[float, float]:
        """A's scores as player 0 and as player 1."""
        first, second = (np.sign(self.outcomes).astype(np.float64).mean(axis=1) + 1) / 2
        return float(first), float(second)

    @property
    def pair_scores(self) -> np.ndarray:
        """`[N]` A's points from the two games of each opening: 0, 1/2, 1, 3/2 or 2."""
        return (np.sign(self.outcomes).astype(np.float64).sum(axis=0) + 2) / 2

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the score, over pairs of games."""
        return paired_interval(self.pair_scores / 2)

    @property
    def interval_text(self) -> str:
        """The interval in per cent, such as `51.2% to 60.7%`."""
        low, high = self.interval
        return f"{low:.1%} to {high:.1%}"

    @property
    def mean_plies(self) -> float:
        return float(self.plies.mean())


def join(results: Sequence[MatchResult]) -> MatchResult:
    """Joins the parts of one match, in order."""
    parts = (np.concatenate([getattr(each, field.name) for each in results], axis=1) for field in FIELDS)
    return MatchResult(*parts)


FIELDS = dataclasses.fields(MatchResult)
