"""Elo ratings of any number of players from their matches (Bradley and Terry 1952).

The model: the expected score of A against B is `1 / (1 + 10 ** ((B - A) / 400))`; a draw is half a win for each.
"""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from alphagat.errors import UserError
from alphagat.evaluation import bradley_terry
from alphagat.evaluation.statistics import MAX_ELO

ELO_PER_UNIT = 400 / np.log(10)  # the fit is in units of the natural logarithm
# Drawn games added to each pair that played: half a win for each player, as in Jeffreys' prior Beta(1/2, 1/2). It keeps
# ratings finite after perfect scores.
PRIOR_GAMES = 1.0
NUM_RESAMPLES = 1000
QUANTILES = (0.025, 0.975)


@dataclasses.dataclass(frozen=True, eq=False)
class PairResult:
    """The score of a player against an opponent.

    Attributes:
      player: its name in the ratings.
      opponent: the opponent's name.
      points: `[N]` float64, the player's points from each of N independent units: single games, or the two games of
        each opening (`MatchResult.pair_scores`), which are correlated.
      games_per_unit: games per unit; points lie between 0 and this.
    """

    player: str
    opponent: str
    points: np.ndarray
    games_per_unit: int = 2

    @property
    def num_games(self) -> int:
        return len(self.points) * self.games_per_unit

    @property
    def score(self) -> float:
        """The player's share of the points, in [0, 1]."""
        return float(np.sum(self.points)) / self.num_games

    @classmethod
    def of_score(cls, player: str, opponent: str, score: float, num_games: int) -> "PairResult":
        """Builds a result from a score with the maximum number of wins, at most one draw, and losses.

        More draws would lower the variance, so intervals are conservative.
        """
        half_points = round(2 * score * num_games)
        points = np.minimum(2, np.maximum(0, half_points - 2 * np.arange(num_games))) / 2
        return cls(player, opponent, points, games_per_unit=1)


@dataclasses.dataclass(frozen=True)
class Rating:
    """A rating relative to the anchor, with its 95% interval; all three are 0 for the anchor."""

    elo: float
    low: float
    high: float


def rate(
    pair_results: Sequence[PairResult], anchor: str, num_resamples: int = NUM_RESAMPLES, seed: int = 0
) -> dict[str, Rating]:
    """Rates all players; the order of `pair_results`, or of the units in one, does not matter.

    Ratings maximise the likelihood with `PRIOR_GAMES` extra draws per pair. Intervals are quantiles of a Bayesian
    bootstrap (Rubin 1981): the units of each pair get random weights, and so do one added win and one added loss with a
    total weight of `PRIOR_GAMES`. Perfect scores thus have an interval, too; its open end is at most `MAX_ELO` from the
    opponent.

    Raises:
      UserError: the anchor has no games, no chain of results links a player to it, or a player plays itself.
    """
    pairs = _pairs(pair_results)
    names = sorted({name for pair in pairs for name in pair})
    _check_linked(names, pairs, anchor)
    numbers = {name: number for number, name in enumerate(names)}
    players = np.array([[numbers[a], numbers[b]] for a, b in pairs])  # [P, 2]
    generator = np.random.default_rng(seed)
    units = [_Units.of(pairs[pair]) for pair in pairs]
    games = np.array([each.games for each in units])
    points = np.array([each.points for each in units])
    shares = np.array([each.resample(generator, num_resamples) for each in units]).T  # [R, P]
    wins = np.concatenate([[points + PRIOR_GAMES / 2], games * shares])
    losses = np.concatenate([[games - points + PRIOR_GAMES / 2], games * (1 - shares)])
    elo = ELO_PER_UNIT * bradley_terry.fit(players, wins, losses, len(names), names.index(anchor))
    low, high = np.quantile(elo[1:], QUANTILES, axis=0)
    return {
        name: Rating(float(value), float(min(low[number], value)), float(max(high[number], value)))
        for number, (name, value) in enumerate(zip(names, elo[0]))
    }


def linked(pair_results: Iterable[PairResult], anchor: str) -> list[PairResult]:
    """Returns the results of the players that a chain of results links to the anchor."""
    pair_results = [each for each in pair_results if len(each.points)]
    reached = _reach([(each.player, each.opponent) for each in pair_results], anchor)
    return [each for each in pair_results if each.player in reached]


@dataclasses.dataclass(frozen=True)
class _Units:
    """The independent units of a pair.

    `parts` has, for each number of games per unit, the distinct points of a unit and their counts, both `[K]`.
    """

    parts: tuple[tuple[int, np.ndarray, np.ndarray], ...]

    @classmethod
    def of(cls, points: dict[int, list[np.ndarray]]) -> "_Units":
        return cls(
            tuple((size, *np.unique(np.concatenate(points[size]), return_counts=True)) for size in sorted(points))
        )

    @property
    def games(self) -> float:
        return float(sum(size * counts.sum() for size, _, counts in self.parts))

    @property
    def points(self) -> float:
        return float(sum(values @ counts for _, values, counts in self.parts))

    def resample(self, generator: np.random.Generator, number: int) -> np.ndarray:
        """Draws `[number]` shares of the points."""
        points = games = np.zeros(number)
        for size, values, counts in self.parts:
            prior = PRIOR_GAMES / len(self.parts) / size / 2  # units of this size added as wins, and as losses
            values = np.concatenate([values, [0, size]])
            weights = generator.standard_gamma(np.concatenate([counts, [prior, prior]]), (number, len(values)))
            points, games = points + weights @ values, games + size * weights.sum(axis=1)
        limit = 1 / (1 + 10 ** (MAX_ELO / 400))
        return np.clip(points / games, limit, 1 - limit)


def _pairs(pair_results: Sequence[PairResult]) -> dict[tuple[str, str], dict[int, list[np.ndarray]]]:
    """Collects the points of the alphabetically first player of each pair by games per unit; sorted."""
    pairs: dict[tuple[str, str], dict[int, list[np.ndarray]]] = {}
    for each in pair_results:
        if each.player == each.opponent:
            raise UserError(f"player {each.player!r} has a match against itself: give the two players different names")
        if not len(each.points):
            continue
        points, size = np.asarray(each.points, np.float64), each.games_per_unit
        first = each.player < each.opponent
        pair = (each.player, each.opponent) if first else (each.opponent, each.player)
        pairs.setdefault(pair, {}).setdefault(size, []).append(points if first else size - points)
    return dict(sorted(pairs.items()))


def _reach(pairs: Iterable[tuple[str, str]], anchor: str) -> set[str]:
    neighbours: dict[str, set[str]] = {}
    for one, other in pairs:
        neighbours.setdefault(one, set()).add(other)
        neighbours.setdefault(other, set()).add(one)
    reached, pending = {anchor}, [anchor]
    while pending:
        new = neighbours.get(pending.pop(), set()) - reached
        reached |= new
        pending += new
    return reached


def _check_linked(names: Sequence[str], pairs: Iterable[tuple[str, str]], anchor: str) -> None:
    if anchor not in names:
        raise UserError(f"anchor {anchor!r} has no games: use one of {', '.join(names) or 'the players of a match'}")
    reached = _reach(pairs, anchor)
    apart = [name for name in names if name not in reached]
    if apart:
        raise UserError(
            f"no chain of matches links {', '.join(apart)} to the anchor {anchor!r}: their ratings cannot be compared; "
            "let one of them play a player that is linked"
        )
