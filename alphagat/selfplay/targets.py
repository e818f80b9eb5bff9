"""Value targets."""

import chex
import jax
import jax.numpy as jnp

from alphagat.selfplay.ply import Ply


def value_targets(history: Ply, value_lambda: float) -> jax.Array:
    """Returns `[T, N]` lambda-returns, each from the perspective of the player to move at its ply.

    G_t = r_t + discount_t * ((1 - lambda) * v_{t+1} + lambda * G_{t+1}), with v the search value
    (Sutton and Barto 2018, equation 12.2, with discount -1 where the player changes). With lambda 1 the target is the
    outcome if the game ends within `history`; otherwise it bootstraps from the last search value.
    """

    per_ply = [history.reward, history.discount, history.search_value, history.ended]
    chex.assert_rank(per_ply, 2)
    chex.assert_equal_shape(per_ply)

    def backward(carry, ply):
        next_return, next_value = carry
        target = ply.reward + ply.discount * ((1 - value_lambda) * next_value + value_lambda * next_return)
        return (target, ply.search_value), target

    earlier = jax.tree.map(lambda x: x[:-1], history)
    last = jax.tree.map(lambda x: x[-1], history)
    last_return = jnp.where(last.ended, last.reward, last.search_value)
    _, targets = jax.lax.scan(backward, (last_return, last.search_value), earlier, reverse=True)
    return jnp.concatenate([targets, last_return[None]])
