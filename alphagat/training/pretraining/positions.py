"""Training positions as arrays on the host."""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import struct

from alphagat.games.batches import concatenate
from alphagat.games.symmetries import Symmetries


class Positions(struct.PyTreeNode):
    """N positions of one board: numpy arrays on the host, or a batch on the devices.

    Attributes:
      state: game states, `[N]` before each shape.
      policy: `[N]` int32, the moves played, or `[N, A]` float32, search policies.
      policy_weight: `[N]` float32.
      value_target: `[N]` float32, from the perspective of the player to move.
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
    return concatenate(parts)


def _as_policy(policy: np.ndarray, num_actions: int) -> np.ndarray:
    return policy if policy.ndim == 2 else np.eye(num_actions, dtype=np.float32)[policy]


def split(positions: Positions, symmetries: Symmetries, holdout: float, seed: int) -> Split:
    """Holds out a fraction `holdout` of the games at random: at least one if it is above 0, but never all.

    Games whose moves are equal up to a symmetry are held out together, because training applies random symmetries: no
    copy of a held-out game is trained on.
    """
    if not holdout:
        return Split(positions, None)
    numbers = _distinct_games(positions, symmetries)
    num_copies = np.bincount(numbers)
    order = np.random.default_rng(seed).permutation(len(num_copies))
    num_held = max(round(holdout * len(numbers)), 1)
    last = np.searchsorted(np.cumsum(num_copies[order]), num_held)
    is_held = np.isin(numbers[positions.game], order[: min(last + 1, len(order) - 1)])
    if is_held.all() or not is_held.any():
        return Split(positions, None)
    return Split(positions.take(~is_held), positions.take(is_held))


def _distinct_games(positions: Positions, symmetries: Symmetries) -> np.ndarray:
    """Returns `[G]`: a number for each game, from 0 in order of appearance; games equal up to a symmetry share one."""
    rows = np.argsort(positions.game, kind="stable")
    ends = np.cumsum(np.bincount(positions.game))
    numbers: dict[bytes, int] = {}
    keys = (_least_image(positions.policy[game], symmetries) for game in np.split(rows, ends[:-1]))
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys])


def _least_image(policy: np.ndarray, symmetries: Symmetries) -> bytes:
    """Returns the least hash of the images of moves `[N]` or policies `[N, A]` under the symmetries."""
    tables = symmetries.action_permutations
    images = (table[policy] if policy.ndim == 1 else policy[:, table] for table in tables)
    return min(hashlib.sha256(image.tobytes()).digest() for image in images)


def digest(positions: Positions) -> str:
    """Returns a hash that identifies the positions when a run resumes."""
    found = hashlib.sha256()
    for leaf in jax.tree.leaves(positions):
        found.update(np.asarray(leaf).tobytes())
    return found.hexdigest()[:16]
