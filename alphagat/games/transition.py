"""Reward and discount of a move; all conversions between the players' views happen here."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Transition(NamedTuple):
    """One move, from the perspective of the player who made it.

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


def win_rewards(player: jax.Array, has_won: jax.Array) -> jax.Array:
    """Returns `[2]` float32, both players' rewards: 1 for `player` and -1 for the other if `has_won`, else 0."""
    paid = jnp.where(jnp.arange(2) == player, jnp.float32(1), jnp.float32(-1))
    return jnp.where(has_won, paid, jnp.float32(0))
