"""Ratings: against a closed form, two other fits, simulated games of known players, and where games say little."""

import itertools
import math

import choix
import numpy as np
import pytest
from scipy.optimize import minimize

from alphagat.errors import UserError
from alphagat.evaluation import bradley_terry
from alphagat.evaluation.ratings import PRIOR_GAMES, PairResult, Rating, linked, rate
from alphagat.evaluation.statistics import MAX_ELO, elo_difference

NAMES = ("random", "weak", "middling", "good", "best")
OTHERS = ("random", "middling", "good", "best")
TRUE = np.array([0.0, 120, 300, 340, 600])


def simulate(generator: np.random.Generator, num_pairs: int, names=NAMES, true=TRUE, spread=0.0) -> list[PairResult]:
    """Lets all players of known ratings play; openings favour one side at random by `spread` Elo, and a third of the
    games that would be won by less than a coin's toss is drawn.
    """
    pair_results = []
    for a, b in itertools.combinations(range(len(names)), 2):
        expected = 1 / (1 + 10 ** (-(true[a] - true[b] + spread * generator.normal(size=(num_pairs, 1))) / 400))
        draws = np.minimum(expected, 1 - expected) * 2 / 3
        tosses = generator.random((num_pairs, 2))
        points = (tosses < expected - draws / 2) * 0.5 + (tosses < expected + draws / 2) * 0.5
        pair_results.append(PairResult(names[a], names[b], points.sum(axis=1)))
    return pair_results


def test_two_player_rating_matches_closed_form():
    ratings = rate([PairResult.of_score("a", "b", 0.75, 200)], anchor="b")
    shrunk = (150 + PRIOR_GAMES / 2) / (200 + PRIOR_GAMES)
    assert ratings["a"].elo == pytest.approx(elo_difference(shrunk), abs=1e-6)
    assert ratings["b"] == Rating(0, 0, 0)


def test_rating_approaches_elo_of_score():
    ratings = rate([PairResult.of_score("a", "b", 0.3, 10_000_000)], anchor="a", num_resamples=10)
    assert ratings["b"].elo == pytest.approx(-elo_difference(0.3), abs=1e-3)


def test_fit_is_the_maximum_of_the_likelihood():
    pair_results = simulate(np.random.default_rng(0), 20)
    ratings = rate(pair_results, anchor="weak", num_resamples=2)

    def loss(strengths: np.ndarray) -> float:
        value = dict(zip(OTHERS, strengths), weak=0.0)
        lost = 0.0
        for each in pair_results:
            difference = value[each.player] - value[each.opponent]
            won = each.points.sum() + PRIOR_GAMES / 2
            lost += won * np.logaddexp(0, -difference)
            lost += (each.num_games + PRIOR_GAMES - won) * np.logaddexp(0, difference)
        return lost

    best = minimize(loss, np.zeros(4), tol=1e-12).x * 400 / math.log(10)
    found = [ratings[name].elo for name in OTHERS]
    np.testing.assert_allclose(found, best, atol=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_fit_agrees_with_choix(seed):
    generator = np.random.default_rng(seed)
    size = 12
    pairs = np.array([pair for pair in itertools.combinations(range(size), 2) if sum(pair) % 3 or pair[0] == 0])
    wins, losses = generator.gamma(1, 20, (2, 1, len(pairs))) + 0.5
    matrix = np.zeros((size, size))
    matrix[pairs[:, 0], pairs[:, 1]], matrix[pairs[:, 1], pairs[:, 0]] = wins[0], losses[0]
    theirs = choix.ilsr_pairwise_dense(matrix, max_iter=1000)
    ours = bradley_terry.fit(pairs, wins, losses, size, origin=3)[0]
    np.testing.assert_allclose(ours, theirs - theirs[3], atol=1e-6)


def test_fit_converges_on_near_certain_cycles():
    """Where nearly certain results form cycles the likelihood is flat far from its maximum; there, every player has
    won as often as expected.
    """
    generator = np.random.default_rng(0)
    for size in generator.integers(3, 40, 60).tolist():
        tree = [(int(generator.integers(0, player)), player) for player in range(1, size)]
        others = np.sort(generator.integers(0, size, (2 * size, 2)), axis=1).tolist()
        pairs = np.array(sorted({(a, b) for a, b in [*tree, *others] if a != b}))
        games = generator.choice([1.0, 1e3, 1e5], len(pairs))
        shares = np.clip(generator.beta(0.5, 0.5, (50, len(pairs))), 1e-3, 1 - 1e-3)
        found = bradley_terry.fit(pairs, games * shares, games * (1 - shares), size, origin=0)
        expected = 1 / (1 + np.exp(found[:, pairs[:, 1]] - found[:, pairs[:, 0]]))
        surplus = np.zeros((size, 50))
        np.add.at(surplus, pairs[:, 0], (games * (shares - expected)).T)
        np.subtract.at(surplus, pairs[:, 1], (games * (shares - expected)).T)
        np.testing.assert_allclose(surplus, 0, atol=1e-6)


@pytest.mark.parametrize("score", [0.5, 0.97, 1.0])
def test_differences_add_up_along_a_chain(score):
    """No pair contradicts another, so differences add up, however far apart the ends are: here up to 41,000 Elo."""
    pair_results = [PairResult.of_score(f"{n + 1:02}", f"{n:02}", score, 200) for n in range(40)]
    link = rate(pair_results[:1], anchor="00", num_resamples=2)["01"].elo
    assert rate(pair_results, anchor="00", num_resamples=2)["40"].elo == pytest.approx(40 * link, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("spread", [0, 300])
def test_intervals_have_nominal_coverage(spread):
    """With unequal openings the two games of a pair differ, which resampling games would not see."""
    generator = np.random.default_rng(1)
    names, true = NAMES[:4], TRUE[:4]
    if spread:  # the openings then compress the scale: what holds for equal players holds
        true = np.zeros(4)
    covered = []
    for seed in range(300):
        ratings = rate(simulate(generator, 60, names, true, spread), "random", num_resamples=300, seed=seed)
        covered += [ratings[name].low <= elo <= ratings[name].high for name, elo in zip(names[1:], true[1:])]
    assert 0.925 < np.mean(covered) < 0.975


def test_equal_pairs_narrow_interval():
    """Openings that decide every game, one to each side, say that two players are alike; single games cannot."""
    pairs = rate([PairResult("a", "b", np.ones(100))], "b")["a"]
    games = rate([PairResult.of_score("a", "b", 0.5, 200)], "b")["a"]
    assert pairs.elo == games.elo == 0
    assert pairs.high - pairs.low < 0.2 * (games.high - games.low)


@pytest.mark.parametrize("won", [True, False])
def test_perfect_scores_have_finite_rating_and_interval(won):
    rating = rate([PairResult("a", "b", np.full(100, 2.0 * won))], "b")["a"]
    near, far = (rating.low, rating.high) if won else (rating.high, rating.low)
    sign = 1 if won else -1
    assert rating.elo == pytest.approx(sign * elo_difference(200.5 / 201), abs=1e-6)
    assert 500 < sign * near < sign * rating.elo - 100
    assert sign * far == pytest.approx(MAX_ELO, abs=1e-6)


def test_a_mixture_of_pairs_and_single_games_has_one_prior():
    pairs, games = PairResult("a", "b", np.full(20, 2.0)), PairResult.of_score("a", "b", 1.0, 40)
    low, mixed, high = (rate(results, "b")["a"].low for results in ([pairs] * 2, [pairs, games], [games] * 2))
    assert low - 40 < mixed < high + 40  # with a prior each, about 100 lower
    assert mixed > 500


def test_more_games_narrow_interval():
    few, many = (rate([PairResult.of_score("a", "b", 0.6, games)], "b")["a"] for games in (100, 1600))
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(4, rel=0.15)


def test_rating_is_invariant_to_order_and_point_of_view():
    pair_results = simulate(np.random.default_rng(2), 15)
    expected = rate(pair_results, "random", num_resamples=50)
    generator = np.random.default_rng(3)
    turned = [
        PairResult(each.opponent, each.player, generator.permutation(2 - each.points)) for each in pair_results[::-1]
    ]
    assert rate(turned, "random", num_resamples=50) == expected
    halves = [PairResult(each.player, each.opponent, each.points[part]) for each in pair_results for part in HALVES]
    assert rate(halves, "random", num_resamples=50) == expected
    assert rate(pair_results, "random", num_resamples=50, seed=1) != expected


HALVES = (slice(None, None, 2), slice(1, None, 2))


def test_pairs_and_single_games_have_equal_weight():
    together = [PairResult("a", "b", np.array([2.0, 1.5])), PairResult.of_score("b", "a", 0.25, 6)]
    assert rate(together, "b")["a"].elo == pytest.approx(elo_difference((3.5 + 4.5 + 0.5) / 11), abs=1e-6)


@pytest.mark.parametrize(
    ("score", "num_games", "points"),
    [(0.5, 3, [1, 0.5, 0]), (1.0, 2, [1, 1]), (0.0, 2, [0, 0]), (0.625, 4, [1, 1, 0.5, 0])],
)
def test_of_score_reconstructs_points(score, num_games, points):
    meeting = PairResult.of_score("a", "b", score, num_games)
    assert list(meeting.points) == points
    assert (meeting.num_games, meeting.score) == (num_games, score)


def test_player_not_linked_to_anchor_is_named():
    pair_results = [
        PairResult("a", "b", np.ones(4)),
        PairResult("c", "d", np.ones(4)),
        PairResult("b", "c", np.ones(0)),
    ]
    with pytest.raises(UserError, match="no chain of matches links c, d to the anchor 'a'"):
        rate(pair_results, "a")
    assert linked(pair_results, "b") == pair_results[:1]
    assert set(rate(linked(pair_results, "d"), "d")) == {"c", "d"}


def test_anchor_without_games_and_self_match_are_rejected():
    with pytest.raises(UserError, match="anchor 'x' has no games: use one of a, b"):
        rate([PairResult("a", "b", np.ones(4))], "x")
    with pytest.raises(UserError, match="anchor 'x' has no games: use one of the players of a match"):
        rate([], "x")
    with pytest.raises(UserError, match="player 'a' has a match against itself"):
        rate([PairResult("a", "a", np.ones(4))], "a")
