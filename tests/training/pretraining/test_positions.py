"""Positions of several sources are joined, and split by game."""

import numpy as np
import pytest

from alphagat.training.pretraining.positions import Positions, digest, join, split


def positions(games, policy=None) -> Positions:
    size = len(games)
    moves = np.arange(size, dtype=np.int32) % 3 if policy is None else policy
    ones = np.ones(size, np.float32)
    return Positions(np.arange(size), moves, ones, ones / 2, ones, np.asarray(games, np.int32))


def test_games_of_different_sources_stay_distinct():
    joined = join([positions([0, 0, 1]), positions([0, 1])], num_actions=3)
    assert joined.game.tolist() == [0, 0, 1, 2, 3]
    assert joined.policy.tolist() == [0, 1, 2, 0, 1]


def test_moves_become_policies_when_joined_with_policies():
    policy = np.array([[0.5, 0.5, 0], [0, 0, 1]], np.float32)
    joined = join([positions([0, 0, 0]), positions([0, 1], policy)], num_actions=3)
    np.testing.assert_array_equal(joined.policy, np.concatenate([np.eye(3), policy]))


@pytest.mark.parametrize(("holdout", "held"), [(0.25, 5), (0.01, 1), (0.99, 19)])
def test_whole_games_are_held_out(holdout, held):
    games = np.repeat(np.arange(20), 7)
    train, held_out = split(positions(games), holdout, seed=3)
    assert held_out is not None
    assert len(set(held_out.game.tolist())) == held
    assert not set(held_out.game.tolist()) & set(train.game.tolist())
    assert sorted([*train.state, *held_out.state]) == [*range(140)]
    again, other = split(positions(games), holdout, seed=3), split(positions(games), holdout, seed=4)
    assert digest(again.train) == digest(train) != digest(other.train)


def test_no_holdout_from_one_game_or_by_default():
    assert split(positions([0, 0, 0]), 0.5, seed=0).held_out is None
    assert split(positions([0, 1, 2]), 0.0, seed=0).held_out is None
