import math

import numpy as np
import pytest

from alphagat.evaluation.statistics import (
    MAX_ELO,
    elo_difference,
    mean_interval,
    paired_interval,
    wilson_interval,
)

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


@pytest.mark.parametrize("count", [4, 8, 100])
def test_mean_interval_has_nominal_coverage(count):
    draws = np.random.default_rng(0).normal(2.0, 3.0, (4000, count))
    bounds = np.array([mean_interval(each) for each in draws])
    share = ((bounds[:, 0] < 2.0) & (bounds[:, 1] > 2.0)).mean()
    assert 0.935 < share < 0.965


def draw_pairs(probability, bias, num_pairs, rng):
    """Draws `[4000, num_pairs]` pair scores. `bias` is the share of openings that one side always wins, which split the
    points; in the negative, the share of openings whose second game repeats the result of the first.
    """
    wins = rng.random((2, 4000, num_pairs)) < probability
    special = rng.random((4000, num_pairs)) < abs(bias)
    second = np.where(special, ~wins[0] if bias > 0 else wins[0], wins[1])
    return (wins[0].astype(float) + second) / 2


@pytest.mark.parametrize("num_pairs", [50, 200])
@pytest.mark.parametrize(("probability", "bias"), [(0.5, 0), (0.5, 0.8), (0.5, -0.9), (0.8, 0), (0.8, -0.5), (0.95, 0)])
def test_paired_interval_has_nominal_coverage(probability, bias, num_pairs):
    draws = draw_pairs(probability, bias, num_pairs, np.random.default_rng(0))
    bounds = np.array([paired_interval(each) for each in draws])
    share = ((bounds[:, 0] < probability) & (bounds[:, 1] > probability)).mean()
    assert 0.93 < share < 0.985


@pytest.mark.parametrize("num_pairs", [50, 200])
@pytest.mark.parametrize("share", [0.01, 0.02, 0.05, 0.2, 1])
@pytest.mark.parametrize("wins", [0.5, 0.9])
def test_paired_interval_covers_if_few_pairs_decide(num_pairs, share, wins):
    rng = np.random.default_rng(0)
    decided = rng.random((2000, num_pairs)) < share
    draws = np.where(decided, rng.random(decided.shape) < wins, 0.5)
    bounds, mean = np.array([paired_interval(each) for each in draws]), 0.5 + share * (wins - 0.5)
    assert ((bounds[:, 0] < mean) & (bounds[:, 1] > mean)).mean() > 0.92


def test_paired_interval_knows_that_the_games_of_a_pair_are_alike():
    split, repeated = np.full(100, 0.5), np.arange(100) % 2
    halves = {name: np.ptp(paired_interval(each)) / 2 for name, each in (("split", split), ("repeated", repeated))}
    independent = np.ptp(wilson_interval(0.5, 200)) / 2
    assert halves["split"] < 0.36 * independent
    assert halves["repeated"] == pytest.approx(independent * math.sqrt(2), rel=0.02)


def test_paired_interval_adds_a_pair_of_independent_games_to_the_variance():
    variance = (0.5**2 + 0.5**2 + 0.25 / 2) / 2  # the mean of two games has half the variance of one, which is 0.25
    assert paired_interval(np.array([0.0, 1.0])) == pytest.approx(wilson_interval(0.5, 2 * 0.25 / variance))


def test_paired_interval_of_equal_results_is_that_of_all_games():
    assert paired_interval(np.ones(20)) == wilson_interval(1.0, 40)
    assert paired_interval(np.zeros(20)) == wilson_interval(0.0, 40)
    assert paired_interval(np.zeros(0)) == (0.0, 1.0)
