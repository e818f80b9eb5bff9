"""Confidence intervals and Elo differences of scores."""

import math

import numpy as np

MAX_ELO = 1200.0


def wilson_interval(score: float, num_games: int, z: float = 1.959964) -> tuple[float, float]:
    """Returns the Wilson score interval (Wilson 1927) of a share of `num_games` games; 95% with the default `z`.

    A draw counts as half a win in `score`. Draws lower the variance, so the interval is conservative.
    """
    if num_games == 0:
        return 0.0, 1.0
    shrink = 1 + z * z / num_games
    centre = (score + z * z / (2 * num_games)) / shrink
    half = z / shrink * math.sqrt(score * (1 - score) / num_games + z * z / (4 * num_games * num_games))
    return max(0.0, centre - half), min(1.0, centre + half)


def mean_interval(values: np.ndarray, z: float = 1.959964) -> tuple[float, float]:
    """Returns the normal confidence interval of the mean of at least two values; 95% with the default `z`."""
    values = np.asarray(values, np.float64)
    half = z * float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()) - half, float(values.mean()) + half


def elo_difference(score: float) -> float:
    """Returns the rating difference with expected score `score`, in [0, 1] (Elo 1978).

    It is `400 log10(score / (1 - score))`, clipped to +-`MAX_ELO`, because it is infinite for scores of 0 and 1.
    """
    if score <= 0 or score >= 1:
        return MAX_ELO if score >= 1 else -MAX_ELO
    return min(MAX_ELO, max(-MAX_ELO, 400 * math.log10(score / (1 - score))))
