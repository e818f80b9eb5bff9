"""Training positions as arrays on the host."""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import struct


class Positions(struct.PyTreeNode):
    """N positions of one board: numpy arrays on the host, or a batch on the devices.

    Attributes:
      state: game states, `[N]` before each shape.
      policy: `[N]` int32, the moves played, or `[N, A]` float32, search policies.
      policy_weight: `[N]` float32.
      value_target: `[N]` float32, from the view of the player to move.
      value_mask: `[N]` float32, 1 if the value target counts, else 0.
      game: `[N]` int32, index of the game, from 0.
      auxiliary: the target of each auxiliary head by name, `[N]` before each shape.
      auxiliary_mask: `[N]` float32, 1 if the auxiliary targets count, else 0; None without auxiliary heads.
    """

    state: Any
    policy: Any
    policy_weight: Any
    value_target: Any
    value_mask: Any
    game: Any
    auxiliary: dict[str, Any] = struct.field(default_factory=dict)
    auxiliary_mask: Any = None

    @property
    def size(self) -> int:
        return len(self.game)

    @property
    def num_games(self) -> int:
        return int(self.game.max()) + 1

    def take(self, rows: np.ndarray) -> "Positions":
        return jax.tree.map(lambda x: x[rows], self)


class Split(NamedTuple):
    """Positions for training, and held-out positions of other games; None if there are none."""

    train: Positions
    held_out: Positions | None


def join(parts: Sequence[Positions], num_actions: int) -> Positions:
    """Concatenates positions of different sources. Moves become one-hot policies if any source has policies."""
    starts = np.cumsum([0, *(part.num_games for part in parts[:-1])])
    parts = [part.replace(game=part.game + np.int32(start)) for part, start in zip(parts, starts)]
    if any(part.policy.ndim == 2 for part in parts):
        parts = [part.replace(policy=_as_policy(part.policy, num_actions)) for part in parts]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _as_policy(policy: np.ndarray, num_actions: int) -> np.ndarray:
    return policy if policy.ndim == 2 else np.eye(num_actions, dtype=np.float32)[policy]


def split(positions: Positions, holdout: float, seed: int) -> Split:
    """Holds out a fraction `holdout` of the games at random: at least one if it is above 0, but never all."""
    num_games = positions.num_games
    num_held = min(max(round(holdout * num_games), 1), num_games - 1) if holdout else 0
    if not num_held:
        return Split(positions, None)
    drawn = np.random.default_rng(seed).permutation(num_games)[:num_held]
    is_held = np.isin(positions.game, drawn)
    if is_held.all() or not is_held.any():
        return Split(positions, None)
    return Split(positions.take(~is_held), positions.take(is_held))


def digest(positions: Positions) -> str:
    """Returns a hash that identifies the positions when a run resumes."""
    found = hashlib.sha256()
    for leaf in jax.tree.leaves(positions):
        found.update(np.asarray(leaf).tobytes())
    return found.hexdigest()[:16]
