"""Targets of values and ownership: what became of a position."""

import chex
import jax
import jax.numpy as jnp

from alphagat.selfplay.games_in_flight import Ply


def ownership_targets(history: Ply) -> jax.Array:
    """Returns `[T, N, V]` int8, who holds each node at the end of a ply's game: 1 the player to move, -1 the other.

    Zeros where the game does not end within `history`.
    """
    assert history.ownership is not None
    chex.assert_rank([history.ended, history.ownership], [2, 3])
    chex.assert_equal_shape_prefix([history.ended, history.ownership], 2)

    def backward(later: jax.Array, ply: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        ended, ownership = ply
        found = jnp.where(ended[:, None], ownership, later)
        return found, found

    _, found = jax.lax.scan(
        backward, jnp.zeros_like(history.ownership[0]), (history.ended, history.ownership), reverse=True
    )
    return jnp.where(history.state.current_player[..., None] == 0, found, -found)


def value_targets(history: Ply, value_lambda: float) -> jax.Array:
    """Returns `[T, N]` lambda-returns, each from the view of the player to move at its ply.

    G_t = r_t + discount_t * ((1 - lambda) * v_{t+1} + lambda * G_{t+1}), with v the search value
    (Sutton and Barto 2018, equation 12.2, with discount -1 where the player changes). With lambda 1 it is the outcome
    of the game wherever the game ends within `history`; past the end of `history` it bootstraps from the last search
    value.
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
