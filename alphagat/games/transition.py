"""Reward and discount of a move; all conversions between the players' views happen here."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Transition(NamedTuple):
    """One move, from the view of the player who made it.

    Attributes:
      reward: `[]` float32.
      discount: `[]` float32, the factor of the next state's value for its player to move: -1 if the player changed, +1
        if the same player moves again, 0 at the end, times `per_move`. Passes, swaps, extra moves and single-player
        games need no special case.
    """

    reward: jax.Array
    discount: jax.Array


def transition(before: Any, after: Any, per_move: float = 1.0) -> Transition:
    """Returns reward and discount of the move from state `before` to state `after`.

    With `per_move` below 1, earlier wins and later losses have higher values.
    """
    mover = before.current_player
    same_player = mover == after.current_player
    return Transition(
        reward=after.rewards[mover],
        discount=jnp.where(after.terminated, 0.0, jnp.where(same_player, per_move, -per_move)),
    )
