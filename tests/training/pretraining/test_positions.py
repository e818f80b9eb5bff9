"""Positions of several sources are joined, and split by game."""

import numpy as np
import pytest

from alphagat.games import make_game
from alphagat.games.symmetries import Symmetries
from alphagat.training.pretraining.positions import Positions, digest, join, split

ACTIONS = np.arange(140, dtype=np.int32)
IDENTITY = Symmetries(ACTIONS[None], ACTIONS[None])


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
    train, held_out = split(positions(games, np.arange(140)), IDENTITY, holdout, seed=3)
    assert held_out is not None
    assert len(set(held_out.game.tolist())) == held
    assert not set(held_out.game.tolist()) & set(train.game.tolist())
    assert sorted([*train.state, *held_out.state]) == [*range(140)]
    again, other = (split(positions(games, np.arange(140)), IDENTITY, holdout, seed=seed) for seed in (3, 4))
    assert digest(again.train) == digest(train) != digest(other.train)


@pytest.mark.parametrize("seed", range(4))
def test_games_with_equal_moves_are_held_out_together(seed):
    """Ten games in two files, in which positions are ordered by ply, then by game; the first is in one file twice."""
    moves = np.stack([np.arange(10, 20), np.arange(10) % 3])
    file = positions(np.tile(np.arange(10), 2), moves.ravel())
    copied = positions(np.tile(np.arange(11), 2), np.hstack([moves, moves[:, :1]]).ravel())
    train, held_out = split(join([file, copied], num_actions=20), IDENTITY, 0.2, seed)
    assert held_out is not None
    first_moves, held_first_moves = (set(part.policy[part.policy >= 10].tolist()) for part in (train, held_out))
    assert not first_moves & held_first_moves
    assert len(set(held_out.game.tolist())) in (4, 5)


@pytest.mark.parametrize("has_policies", [False, True])
@pytest.mark.parametrize("name", ["connect_four", "hex:3", "go:5"])
def test_images_of_a_game_under_symmetries_are_held_out_together(name, has_policies):
    """Six games and all of their images, three positions each."""
    symmetries = make_game(name).symmetries
    num_actions, num_images = symmetries.action_permutations.shape[1], symmetries.num_symmetries
    policies = np.eye(num_actions, dtype=np.float32)[np.array([[a, (a + 1) % 5, a] for a in range(6)])]
    images = policies[:, :, symmetries.action_permutations].swapaxes(1, 2).reshape(6 * num_images * 3, num_actions)
    policy = images if has_policies else images.argmax(-1).astype(np.int32)
    train, held_out = split(positions(np.repeat(np.arange(6 * num_images), 3), policy), symmetries, 0.3, seed=0)
    assert held_out is not None
    originals, held_originals = (set((part.game // num_images).tolist()) for part in (train, held_out))
    assert held_originals
    assert not originals & held_originals


def test_no_holdout_from_one_game_or_by_default():
    assert split(positions([0, 0, 0]), IDENTITY, 0.5, seed=0).held_out is None
    assert split(positions([0, 1], np.array([4, 4])), IDENTITY, 0.5, seed=0).held_out is None
    assert split(positions([0, 1, 2]), IDENTITY, 0.0, seed=0).held_out is None
