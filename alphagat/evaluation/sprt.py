"""The sequential probability ratio test: stops a match as soon as it is decided."""

import dataclasses
import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from alphagat.errors import UserError

PAIR_SCORES = np.array([0.0, 0.5, 1.0, 1.5, 2.0])  # possible points from the two games of an opening
BISECTIONS = 60

Verdict = Literal["accepted", "rejected", "undecided"]


@dataclasses.dataclass(frozen=True)
class Sprt:
    """The state of a test.

    Attributes:
      llr: the log-likelihood ratio: positive in favour of `elo1`, negative in favour of `elo0`.
      lower: at or below it, the test accepts `elo0`.
      upper: at or above it, the test accepts `elo1`.
      verdict: `accepted` (`elo1`), `rejected` (`elo0`) or `undecided` (continue the match).
      elo0, elo1: the hypotheses, as in `sprt`.
    """

    llr: float
    lower: float
    upper: float
    verdict: Verdict
    elo0: float
    elo1: float


def sprt(pair_scores: npt.ArrayLike, elo0: float, elo1: float, alpha: float = 0.05, beta: float = 0.05) -> Sprt:
    """Tests, from the pairs played so far, whether A is stronger than B by `elo1` rather than by `elo0`.

    This is the generalised SPRT (Van den Bergh, "The generalized SPRT", 2020), as in Fishtest. The unit is a pair of
    games from one opening with swapped colours; it has five possible results. The likelihood of each hypothesis is the
    maximum over all distributions of these results whose mean is the expected score of `elo0` or `elo1`. Draws and
    unbalanced openings therefore need no model, and it is no special case if all pairs so far have the same result.
    Fishtest adds pseudo-counts; instead, the distribution here may give weight to results that have not occurred.

    Call it after every pair, or every few, and stop at the first verdict. Error rates are then close to nominal (Wald
    1945), and slightly lower with several pairs between calls.

    Args:
      pair_scores: `[N]` A's points from each pair: 0, 1/2, 1, 3/2 or 2.
      elo0: below `elo1`.
      elo1: above `elo0`.
      alpha: the probability of accepting a player that is only `elo0` stronger.
      beta: the probability of rejecting a player that is `elo1` stronger.

    Raises:
      UserError: the two Elos are not in order, or `alpha` or `beta` is not between 0 and 1/2.
    """
    if not -math.inf < elo0 < elo1 < math.inf:
        raise UserError(f"elo0={elo0:g} and elo1={elo1:g}: elo0 must be below elo1, e.g. elo0=0 and elo1=20")
    if not (0 < alpha < 0.5 and 0 < beta < 0.5):
        raise UserError(f"alpha={alpha:g} and beta={beta:g}: they must be between 0 and 0.5, e.g. 0.05")
    llr = float(log_likelihood_ratio(count_pairs(pair_scores), elo0, elo1))
    lower, upper = math.log(beta / (1 - alpha)), math.log((1 - beta) / alpha)
    verdict: Verdict = "accepted" if llr >= upper else "rejected" if llr <= lower else "undecided"
    return Sprt(llr, lower, upper, verdict, elo0, elo1)


def count_pairs(pair_scores: npt.ArrayLike) -> np.ndarray:
    """Returns `[5]` int64, the numbers of pairs with 0, 1/2, 1, 3/2 and 2 points.

    Raises:
      ValueError: a score is none of these.
    """
    halves = 2 * np.asarray(pair_scores, np.float64).ravel()
    if not np.isin(halves, 2 * PAIR_SCORES).all():
        raise ValueError(f"pair scores are 0, 1/2, 1, 3/2 or 2, not {np.setdiff1d(halves / 2, PAIR_SCORES)}")
    return np.bincount(halves.astype(int), minlength=5)


def log_likelihood_ratio(counts: np.ndarray, elo0: float, elo1: float) -> np.ndarray:
    """Returns the log-likelihood ratio `[...]` of `elo1` over `elo0` for counts `[..., 5]` of pairs."""
    return _misfit(counts, elo0) - _misfit(counts, elo1)


def _misfit(counts: np.ndarray, elo: float) -> np.ndarray:
    """Returns the loss of log-likelihood `[...]` of counts `[..., 5]` under the constraint of the mean score of `elo`.

    By duality (Owen, "Empirical Likelihood", 2001, section 2.9), it is the maximum over t of the concave
    `sum(counts * log(1 + t * (score - mean)))`, with t such that no argument of the logarithm is
    negative for scores in [0, 1].
    """
    mean = 1 / (1 + 10 ** (-elo / 400))
    excess = PAIR_SCORES / 2 - mean  # [5], scores per game
    shape = np.shape(counts)[:-1]
    low, high = np.full(shape, -1 / (1 - mean)), np.full(shape, 1 / mean)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        factors = np.where(counts > 0, 1 + middle[..., None] * excess, 1.0)  # only results without pairs may reach 0
        slope = (counts * excess / factors).sum(axis=-1)
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    middle = (low + high) / 2
    return (counts * np.log(np.where(counts > 0, 1 + middle[..., None] * excess, 1.0))).sum(axis=-1)
