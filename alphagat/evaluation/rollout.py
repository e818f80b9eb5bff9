"""Uniformly random play, cheap enough for every simulation of a search."""

from typing import Any

import jax
import jax.numpy as jnp

from alphagat.games.base import Game

# SplitMix (Steele, Lea & Flood 2014) with the 32-bit finaliser of MurmurHash3: a word costs a few integer operations;
# Threefry would take longer than the move itself.
_WEYL, _MIX_1, _MIX_2 = 0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35


def rollout(game: Game, key: jax.Array, states: Any) -> jax.Array:
    """Plays uniformly random legal moves to the end of every game.

    Returns the `[B]` results for the player to move in `states`; 0 for terminal states. A game still running after
    `game.max_plies` plies returns the sum of its rewards so far.
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
        actions = uniform_actions(word(seeds, ply), states.legal_action_mask)
        states = step(states, actions, jax.random.split(jax.random.fold_in(step_key, ply), batch_size))
        return ply + 1, states, returns + states.rewards

    start = (jnp.uint32(0), states, jnp.zeros_like(states.rewards))
    _, _, returns = jax.lax.while_loop(is_running, play, start)  # [B, num_players]
    mover = states.current_player[:, None].astype(jnp.int32)
    return jnp.take_along_axis(returns, mover, axis=-1)[:, 0]


def uniform_actions(bits: jax.Array, legal: jax.Array) -> jax.Array:
    """Returns `[B]` int32, uniform over `legal` `[B, A]`, from `[B]` uint32 random words; 0 if nothing is legal."""
    noise = action_noise(bits, legal.shape[-1])
    return jnp.argmax(jnp.where(legal, noise, -1.0), axis=-1).astype(jnp.int32)


def action_noise(bits: jax.Array, num_actions: int) -> jax.Array:
    """Spreads each of the `[B]` uint32 random words over `[B, A]` float32, pseudo-random and uniform in [0, 1).

    The argmax over legal entries is a uniformly random action, faster than a cumulative sum over the mask.
    """
    actions = jnp.arange(num_actions, dtype=jnp.uint32) * jnp.uint32(_WEYL)
    return (_finalise(bits[:, None] ^ actions[None, :]) >> 8).astype(jnp.float32) * 2.0**-24


def word(seeds: jax.Array, index: jax.Array) -> jax.Array:
    """Returns word number `index` of the SplitMix32 sequences that start at `seeds` `[B]` uint32."""
    return _finalise(seeds + (index + jnp.uint32(1)) * jnp.uint32(_WEYL))


def _finalise(words: jax.Array) -> jax.Array:
    words = (words ^ (words >> 16)) * jnp.uint32(_MIX_1)
    words = (words ^ (words >> 13)) * jnp.uint32(_MIX_2)
    return words ^ (words >> 16)
