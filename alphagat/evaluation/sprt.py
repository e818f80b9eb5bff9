"""The sequential probability ratio test: playing no more games than it takes to tell whether a player is stronger."""

import dataclasses
import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from alphagat.errors import UserError

PAIR_SCORES = np.array([0.0, 0.5, 1.0, 1.5, 2.0])  # the points that the two games of an opening can give
BISECTIONS = 60

Verdict = Literal["accepted", "rejected", "undecided"]


@dataclasses.dataclass(frozen=True)
class Sprt:
    """The state of a test.

    Attributes:
      llr: the logarithm of the likelihood ratio: above 0 where the games speak for `elo1`, below for `elo0`.
      lower: at or below it the test ends and A is taken to be at most `elo0` stronger.
      upper: at or above it the test ends and A is taken to be at least `elo1` stronger.
      verdict: `accepted` (`elo1`), `rejected` (`elo0`) or `undecided`: play on.
    """

    llr: float
    lower: float
    upper: float
    verdict: Verdict


def sprt(pair_scores: npt.ArrayLike, elo0: float, elo1: float, alpha: float = 0.05, beta: float = 0.05) -> Sprt:
    """Tests whether A is at least `elo1` stronger than B, against at most `elo0`, by the pairs played so far.

    It is the generalised test of Van den Bergh ("The generalized SPRT", 2020), as Fishtest runs it: the unit is a pair
    of games from one opening with swapped colours, of five possible results, and the likelihood of either hypothesis is
    the largest that any distribution of these has whose mean is the expected score of `elo0` or `elo1`. So draws and
    unequal openings need no model, and a hundred equal pairs are no special case. Other than Fishtest, which adds
    pseudo-counts, such a distribution may have results that did not come yet.

    Call it after every pair, or every few, and stop at the first verdict; errors are then about as rare as said (Wald
    1945), a little rarer with few pairs between two calls.

    Args:
      pair_scores: `[N]` A's points from each pair: 0, 1/2, 1, 3/2 or 2.
      elo0: below `elo1`.
      elo1: above `elo0`.
      alpha: how often a player that is only `elo0` stronger may be accepted.
      beta: how often a player that is `elo1` stronger may be rejected.

    Raises:
      UserError: the two Elos are not in order, or `alpha` or `beta` is not between 0 and 1/2.
    """
    if not -math.inf < elo0 < elo1 < math.inf:
        raise UserError(f"elo0={elo0:g} and elo1={elo1:g}: take elo0 < elo1, e.g. elo0=0 and elo1=20")
    if not (0 < alpha < 0.5 and 0 < beta < 0.5):
        raise UserError(f"alpha={alpha:g} and beta={beta:g}: take error rates between 0 and 0.5, e.g. 0.05")
    llr = float(log_likelihood_ratio(count_pairs(pair_scores), elo0, elo1))
    lower, upper = math.log(beta / (1 - alpha)), math.log((1 - beta) / alpha)
    verdict: Verdict = "accepted" if llr >= upper else "rejected" if llr <= lower else "undecided"
    return Sprt(llr, lower, upper, verdict)


def count_pairs(pair_scores: npt.ArrayLike) -> np.ndarray:
    """Counts `[N]` pair scores: `[5]` int64, how many pairs gave 0, 1/2, 1, 3/2 and 2 points.

    Raises:
      ValueError: there is another score.
    """
    halves = 2 * np.asarray(pair_scores, np.float64).ravel()
    if not np.isin(halves, 2 * PAIR_SCORES).all():
        raise ValueError(f"pair scores are 0, 1/2, 1, 3/2 or 2, not {np.setdiff1d(halves / 2, PAIR_SCORES)}")
    return np.bincount(halves.astype(int), minlength=5)


def log_likelihood_ratio(counts: np.ndarray, elo0: float, elo1: float) -> np.ndarray:
    """Returns the log-likelihood ratio `[...]` of `elo1` over `elo0` for counts `[..., 5]` of pairs."""
    return _misfit(counts, elo0) - _misfit(counts, elo1)


def _misfit(counts: np.ndarray, elo: float) -> np.ndarray:
    """Returns the log-likelihood `[...]` that counts `[..., 5]` lose when the mean score has to be that of `elo`.

    By duality (Owen, "Empirical Likelihood", 2001, section 2.9) it is the maximum over t of
    `sum(counts * log(1 + t * (score - mean)))`, concave in t, where no term may be below 0 on [0, 1].
    """
    mean = 1 / (1 + 10 ** (-elo / 400))
    excess = PAIR_SCORES / 2 - mean  # [5], scores per game
    shape = np.shape(counts)[:-1]
    low, high = np.full(shape, -1 / (1 - mean)), np.full(shape, 1 / mean)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        factors = np.where(counts > 0, 1 + middle[..., None] * excess, 1.0)  # 0 may come only where no pair is
        slope = (counts * excess / factors).sum(axis=-1)
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    middle = (low + high) / 2
    return (counts * np.log(np.where(counts > 0, 1 + middle[..., None] * excess, 1.0))).sum(axis=-1)
