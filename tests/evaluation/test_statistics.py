import math

import numpy as np
import pytest

from alphagat.evaluation.statistics import MAX_ELO, elo_difference, mean_interval, wilson_interval

Z = 1.959964


@pytest.mark.parametrize("num_games", [1, 10, 200])
def test_wilson_matches_closed_forms(num_games):
    assert wilson_interval(0.0, num_games) == pytest.approx((0, Z**2 / (num_games + Z**2)))
    assert wilson_interval(1.0, num_games) == pytest.approx((num_games / (num_games + Z**2), 1))
    half = Z / (2 * math.sqrt(num_games + Z**2))
    assert wilson_interval(0.5, num_games) == pytest.approx((0.5 - half, 0.5 + half))


def test_wilson_matches_a_published_example():
    # 81 of 263, without continuity correction (Newcombe 1998, table I).
    assert wilson_interval(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)


def test_no_games_give_full_interval():
    assert wilson_interval(0.0, 0) == (0.0, 1.0)


def test_elo_is_the_logistic_curve():
    assert elo_difference(0.5) == 0
    assert elo_difference(10 / 11) == pytest.approx(400)
    assert elo_difference(0.25) == pytest.approx(-elo_difference(0.75))
    assert elo_difference(0.75) == pytest.approx(190.85, abs=0.01)


def test_elo_is_clipped():
    assert elo_difference(1.0) == elo_difference(1 - 1e-9) == MAX_ELO
    assert elo_difference(0.0) == elo_difference(1e-9) == -MAX_ELO


def test_mean_interval_has_nominal_coverage():
    draws = np.random.default_rng(0).exponential(2.0, (2000, 100))
    bounds = np.array([mean_interval(each) for each in draws])
    share = ((bounds[:, 0] < 2.0) & (bounds[:, 1] > 2.0)).mean()
    assert 0.92 < share < 0.97
