"""Confidence intervals and Elo differences of scores."""

import math

import numpy as np
from scipy.special import stdtrit

MAX_ELO = 1200.0
Z = 1.959964  # 95% of a normal distribution lie within Z standard deviations
# Independent games per pair, at most: it binds if fewer than 6% of the pairs are uneven, too few for a variance.
MAX_INDEPENDENT = 16


def wilson_interval(score: float, num_games: float) -> tuple[float, float]:
    """Returns the 95% Wilson score interval (Wilson 1927) of a share of `num_games` independent games.

    A draw counts as half a win in `score`. Draws lower the variance, so the interval is conservative.
    """
    if num_games == 0:
        return 0.0, 1.0
    shrink = 1 + Z * Z / num_games
    centre = (score + Z * Z / (2 * num_games)) / shrink
    half = Z / shrink * math.sqrt(score * (1 - score) / num_games + Z * Z / (4 * num_games * num_games))
    return max(0.0, centre - half), min(1.0, centre + half)


def paired_interval(pair_scores: np.ndarray) -> tuple[float, float]:
    """Returns the 95% interval of the mean of `[N]` pair scores in [0, 1], each the mean of two games of one opening.

    The games of a pair are not independent: a good opening for one side is won twice, once by each player. The interval
    is Wilson's for the number of independent games whose mean has the variance found between the pairs (Korn and
    Graubard 1998), at most `MAX_INDEPENDENT` per pair. One pair of independent games is added to the variance, so that
    it is never 0.
    """
    num_pairs = len(pair_scores)
    if num_pairs == 0:
        return 0.0, 1.0
    score = float(np.mean(pair_scores))
    independent = score * (1 - score)  # variance of a game, if there are no draws
    if independent == 0:
        return wilson_interval(score, 2 * num_pairs)
    variance = (float(np.square(pair_scores - score).sum()) + independent / 2) / num_pairs
    return wilson_interval(score, num_pairs * min(independent / variance, MAX_INDEPENDENT))


def mean_interval(values: np.ndarray) -> tuple[float, float]:
    """Returns Student's 95% interval of the mean of at least two values."""
    values = np.asarray(values, np.float64)
    half = float(stdtrit(len(values) - 1, 0.975)) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()) - half, float(values.mean()) + half


def elo_difference(score: float) -> float:
    """Returns the rating difference with expected score `score`, in [0, 1] (Elo 1978).

    It is `400 log10(score / (1 - score))`, clipped to +-`MAX_ELO`, because it is infinite for scores of 0 and 1.
    """
    if score <= 0 or score >= 1:
        return MAX_ELO if score >= 1 else -MAX_ELO
    return min(MAX_ELO, max(-MAX_ELO, 400 * math.log10(score / (1 - score))))
