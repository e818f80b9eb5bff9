"""One move of self-play, as it was searched and played."""

from typing import Any

import jax
from flax import struct


class Ply(struct.PyTreeNode):
    """One searched move of one game; a history has `[T, N]` (time, games) before each shape.

    Attributes:
      state: the position.
      action: `[]` int32, the move.
      policy_target: `[A]` float32.
      is_full: `[]` bool, searched in full; other plies are not trained on.
      policy_weight: `[]` float32, weight of this ply in the policy loss; 1 on average over the full searches, else 0.
      search_value: `[]` float32, the root value from the perspective of the player to move.
      reward: `[]` float32, from the perspective of the player who moved.
      discount: `[]` float32, of the next position's value; 0 where the game terminated or was truncated.
      ended: `[]` bool, the game terminated or was truncated here.
      truncated: `[]` bool, the game was truncated at the ply cap.
      length: `[]` int32, plies of the game so far, including this one and the random opening.
      auxiliary: the record of each auxiliary target by its name, as `AuxiliaryTarget.record` says.
    """

    state: Any
    action: jax.Array
    policy_target: jax.Array
    is_full: jax.Array
    policy_weight: jax.Array
    search_value: jax.Array
    reward: jax.Array
    discount: jax.Array
    ended: jax.Array
    truncated: jax.Array
    length: jax.Array
    auxiliary: dict[str, jax.Array] = struct.field(default_factory=dict)
