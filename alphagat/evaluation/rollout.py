"""Uniformly random play, cheap enough to be repeated in every simulation of a search."""

from typing import Any

import jax
import jax.numpy as jnp

from alphagat.games.base import Game

# Constants of SplitMix32 (Steele, Lea & Flood 2014, with the 32-bit finaliser of MurmurHash3).
_WEYL, _MIX_1, _MIX_2 = 0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35


def rollout(game: Game, key: jax.Array, states: Any) -> jax.Array:
    """Plays uniformly random legal moves to the end of every game; returns the `[B]` results for the player to move now.

    Terminal states give 0. A game still running after `game.max_plies` plies counts what it was paid until then.
    """
    seed_key, step_key = jax.random.split(key)
    batch_size = states.terminated.shape[0]
    seeds = jax.random.bits(seed_key, (batch_size,), jnp.uint32)
    step = jax.vmap(game.step)

    def is_running(carry: tuple) -> jax.Array:
        ply, states, _ = carry
        return (ply < game.max_plies) & ~states.terminated.all()

    def play(carry: tuple) -> tuple:
        ply, states, returns = carry
        actions = uniform_actions(_mix(seeds, ply), states.legal_action_mask)
        states = step(states, actions, jax.random.split(jax.random.fold_in(step_key, ply), batch_size))
        return ply + 1, states, returns + states.rewards

    start = (jnp.uint32(0), states, jnp.zeros_like(states.rewards))
    _, _, returns = jax.lax.while_loop(is_running, play, start)  # [B, num_players]
    mover = states.current_player[:, None].astype(jnp.int32)
    return jnp.take_along_axis(returns, mover, axis=-1)[:, 0]


def uniform_actions(bits: jax.Array, legal: jax.Array) -> jax.Array:
    """Returns `[B]` int32, uniform over `legal` `[B, A]`, one per `[B]` uint32 random word; 0 where nothing is legal.

    The probabilities are exact to `2 ** -24`.
    """
    ranks = jnp.cumsum(legal, axis=-1, dtype=jnp.int32)  # [B, A]
    uniform = (bits >> 8).astype(jnp.float32) * 2.0**-24  # [B], below 1
    chosen = jnp.floor(uniform * ranks[:, -1]).astype(jnp.int32)
    return jnp.argmax(ranks > chosen[:, None], axis=-1).astype(jnp.int32)


def _mix(seeds: jax.Array, ply: jax.Array) -> jax.Array:
    """Returns word number `ply` of the SplitMix32 sequences that start at `seeds` `[B]`: far cheaper than Threefry per move."""
    word = seeds + (ply + jnp.uint32(1)) * jnp.uint32(_WEYL)
    word = (word ^ (word >> 16)) * jnp.uint32(_MIX_1)
    word = (word ^ (word >> 13)) * jnp.uint32(_MIX_2)
    return word ^ (word >> 16)
