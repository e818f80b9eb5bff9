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
    train, held_out = split(positions(games, np.arange(140)), holdout, seed=3)
    assert held_out is not None
    assert len(set(held_out.game.tolist())) == held
    assert not set(held_out.game.tolist()) & set(train.game.tolist())
    assert sorted([*train.state, *held_out.state]) == [*range(140)]
    again, other = (split(positions(games, np.arange(140)), holdout, seed=seed) for seed in (3, 4))
    assert digest(again.train) == digest(train) != digest(other.train)


@pytest.mark.parametrize("seed", range(4))
def test_games_with_equal_moves_are_held_out_together(seed):
    """Ten games in two files, in which positions are ordered by ply, then by game; the first is in one file twice."""
    moves = np.stack([np.arange(10, 20), np.arange(10) % 3])
    file = positions(np.tile(np.arange(10), 2), moves.ravel())
    copied = positions(np.tile(np.arange(11), 2), np.hstack([moves, moves[:, :1]]).ravel())
    train, held_out = split(join([file, copied], num_actions=20), 0.2, seed)
    assert held_out is not None
    first_moves, held_first_moves = (set(part.policy[part.policy >= 10].tolist()) for part in (train, held_out))
    assert not first_moves & held_first_moves
    assert len(set(held_out.game.tolist())) in (4, 5)


def test_no_holdout_from_one_game_or_by_default():
    assert split(positions([0, 0, 0]), 0.5, seed=0).held_out is None
    assert split(positions([0, 1], np.array([4, 4])), 0.5, seed=0).held_out is None
    assert split(positions([0, 1, 2]), 0.0, seed=0).held_out is None
