"""The sequential test: its error rates in simulated matches, and its likelihood against a general optimiser."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from alphagat.errors import UserError
from alphagat.evaluation.sprt import PAIR_SCORES, count_pairs, log_likelihood_ratio, sprt

BOUND = math.log(19)  # of both error rates 0.05


def expected(elo: float) -> float:
    return 1 / (1 + 10 ** (-elo / 400))


def pairs_with_mean(score: float, draws: float) -> np.ndarray:
    """Returns the probabilities `[5]` of pair scores when two equal and independent games score `score`."""
    game = np.array([1 - score - draws / 2, draws, score - draws / 2])
    return np.convolve(game, game)


def decide(probabilities: np.ndarray, elo0: float, elo1: float, num_matches: int, num_pairs: int) -> np.ndarray:
    """Runs the test after every pair of many matches: `[num_matches]` +1 accepted, -1 rejected, 0 neither."""
    generator = np.random.default_rng(0)
    results = generator.choice(5, (num_matches, num_pairs), p=probabilities)
    counts = np.cumsum(results[..., None] == np.arange(5), axis=1)
    llr = log_likelihood_ratio(counts, elo0, elo1)
    over = np.abs(llr) >= BOUND
    first = np.where(over.any(axis=1), over.argmax(axis=1), num_pairs - 1)
    last = llr[np.arange(num_matches), first]
    return np.where(np.abs(last) >= BOUND, np.sign(last), 0)


@pytest.mark.parametrize("draws", [0.0, 0.3])
@pytest.mark.parametrize("truth", [0, 60])
def test_error_rates_are_nominal(draws, truth):
    decided = decide(pairs_with_mean(expected(truth), draws), 0, 60, num_matches=400, num_pairs=700)
    assert (decided != 0).all()
    wrong = (decided == (1 if truth == 0 else -1)).mean()
    assert 0.01 < wrong < 0.07  # 0.05, less what a last pair overshoots, and twice the deviation of 400 matches


def test_decisive_openings_shorten_test():
    """Nearly every opening is won by the same side in both games, so a pair hardly varies, and few pairs tell."""
    decisive = np.array([0, 0.02, 0.8, 0.18, 0])
    assert decisive @ PAIR_SCORES / 2 == pytest.approx(expected(28), abs=2e-3)
    decided = decide(decisive, 0, 20, num_matches=200, num_pairs=300)
    alike = decide(pairs_with_mean(decisive @ PAIR_SCORES / 2, 0), 0, 20, num_matches=200, num_pairs=300)
    assert (decided == 1).mean() > 0.95
    assert (alike == 0).mean() > 0.5


@pytest.mark.parametrize("counts", [(3, 10, 40, 20, 5), (0, 3, 10, 8, 0), (0, 0, 0, 4, 6), (7, 0, 0, 0, 0)])
def test_likelihood_is_maximal_for_given_mean(counts):
    """Over all distributions of the five results, by a general optimiser, which starts anywhere."""
    counts = np.array(counts)

    def largest(elo: float) -> float:
        constraints = [
            {"type": "eq", "fun": lambda p: p.sum() - 1},
            {"type": "eq", "fun": lambda p: p @ PAIR_SCORES / 2 - expected(elo)},
        ]
        found = minimize(
            lambda p: -(counts * np.log(np.maximum(p, 1e-12))).sum(),
            np.full(5, 0.2),
            bounds=[(0, 1)] * 5,
            constraints=constraints,
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        return -found.fun

    assert log_likelihood_ratio(counts, -30, 70) == pytest.approx(largest(70) - largest(-30), abs=1e-4)


def test_many_pairs_agree_with_the_normal_approximation():
    """N (s1 - s0) (2 s - s0 - s1) / (2 variance), which holds where s0 and s1 are close to the score s."""
    counts = np.array([900, 2200, 4000, 2300, 1000])
    scores = np.repeat(PAIR_SCORES / 2, counts)
    low, high = expected(0), expected(6)
    approximate = len(scores) * (high - low) * (2 * scores.mean() - low - high) / (2 * scores.var())
    assert log_likelihood_ratio(counts, 0, 6) == pytest.approx(approximate, rel=0.02)


def test_verdicts_and_bounds():
    won, lost = (sprt(np.full(60, score), 0, 25) for score in (1.5, 0.5))
    assert (won.verdict, lost.verdict) == ("accepted", "rejected")
    assert (won.lower, won.upper) == pytest.approx((-BOUND, BOUND))
    assert sprt([1.5, 1.0, 0.5, 2.0], 0, 25).verdict == "undecided"
    strict = sprt(np.full(60, 1.5), 0, 25, alpha=0.001, beta=0.1)
    assert strict.verdict == "undecided"
    assert (strict.lower, strict.upper) == pytest.approx((math.log(0.1 / 0.999), math.log(0.9 / 0.001)))
    assert strict.llr == won.llr


@pytest.mark.parametrize("score", PAIR_SCORES)
def test_equal_pairs_have_a_finite_ratio(score):
    """The variance is 0; each pair then counts as a single result with the hypothesis' own odds."""
    above = score / 2 > expected(10)
    low, high = expected(0), expected(20)
    each = math.log(high / low) if above else math.log((1 - high) / (1 - low)) if score < 1 else None
    for number in (1, 10, 1000):
        llr = sprt(np.full(number, score), 0, 20).llr
        assert llr == pytest.approx(number * (each if each is not None else math.log(2 * (1 - high))), rel=1e-9)


def test_no_pairs_give_zero_ratio():
    assert sprt([], 0, 20).llr == 0
    assert sprt([], 0, 20).verdict == "undecided"


def test_swapping_players_negates_ratio():
    scores = np.random.default_rng(0).choice(PAIR_SCORES, 50)
    assert sprt(2 - scores, -20, 10).llr == pytest.approx(-sprt(scores, -10, 20).llr, rel=1e-9)


def test_count_pairs():
    assert list(count_pairs([0, 2, 1.5, 2, 1])) == [1, 0, 1, 1, 2]
    with pytest.raises(ValueError, match="pair scores are"):
        count_pairs([0.25])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"elo0": 5, "elo1": 5}, "elo0=5 and elo1=5: elo0 must be below elo1"),
        ({"elo0": 0, "elo1": math.inf}, "elo1=inf: elo0 must be below elo1"),
        ({"elo0": math.nan, "elo1": 5}, "elo0=nan"),
        ({"elo0": 0, "elo1": 5, "alpha": 0}, "alpha=0 and beta=0.05: they must be between"),
        ({"elo0": 0, "elo1": 5, "beta": 0.5}, "beta=0.5: they must be between"),
    ],
)
def test_invalid_arguments_are_rejected(options, message):
    with pytest.raises(UserError, match=message):
        sprt([1.0], **options)


def test_each_match_of_a_batch_has_its_own_ratio():
    counts = np.array([[3, 10, 40, 20, 5], [0, 3, 10, 8, 0], [7, 0, 0, 0, 0]])
    alone = [log_likelihood_ratio(each, 0, 30) for each in counts]
    np.testing.assert_allclose(log_likelihood_ratio(counts, 0, 30), alone, rtol=1e-9)
