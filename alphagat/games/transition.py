"""What a move pays and how the next value counts: the one place where a player's view is taken."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Transition(NamedTuple):
    """One move, from the view of the player who made it.

    Attributes:
      reward: `[]` float32.
      discount: `[]` float32, what the value of the next state, seen by its player to move, is multiplied with: -1 where
        the player changed, +1 where the same player moves again, 0 at the end, times `per_move`. Passes, swaps, extra
        moves and single-player games need no case of their own.
    """

    reward: jax.Array
    discount: jax.Array


def transition(before: Any, after: Any, per_move: float = 1.0) -> Transition:
    """Returns reward and discount of the move that led from state `before` to state `after`.

    With `per_move` below 1 a win is worth the more the sooner it comes, and a loss the later.
    """
    mover = before.current_player
    same_player = mover == after.current_player
    return Transition(
        reward=after.rewards[mover],
        discount=jnp.where(after.terminated, 0.0, jnp.where(same_player, per_move, -per_move)),
    )
