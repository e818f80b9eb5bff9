"""Games of Pgx, replayed from our actions."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pgx
from pgx.go import Go


class Replay(NamedTuple):
    """What Pgx makes of B games; position 0 is the first."""

    players: np.ndarray  # [T + 1, B]
    legal: np.ndarray  # [T + 1, B, labels], all False once terminated
    rewards: np.ndarray  # [T + 1, B, 2]
    terminated: np.ndarray  # [T + 1, B]
    observations: np.ndarray  # [T + 1, B, ...]
    state: object  # the last one


make = functools.cache(pgx.make)
make_go = functools.cache(Go)


def replay(env, labels) -> Replay:
    """Plays the `[T, B]` actions, numbered as Pgx does, from a start in which player 0 moves first."""
    with jax.numpy_rank_promotion("allow"):
        seen, last = compile_replay(env)(jnp.asarray(labels, jnp.int32))
    return Replay(*(np.asarray(x) for x in seen), state=last)


@functools.cache
def compile_replay(env):
    def ply(state, label):
        after = jax.vmap(env.step)(state, label)
        return after, seen(after)

    def seen(state):
        legal = state.legal_action_mask & ~state.terminated[:, None]
        return state.current_player, legal, state.rewards, state.terminated, state.observation

    @jax.jit
    def play(labels):
        # Pgx draws lots for who begins.
        starts = jax.vmap(env.init)(jax.random.split(jax.random.key(0), 20))
        first = jnp.argmin(starts.current_player)
        start = jax.tree.map(lambda x: jnp.broadcast_to(x[first], (labels.shape[1], *x.shape[1:])), starts)
        last, rest = jax.lax.scan(ply, start, labels)
        return jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), seen(start), rest), last

    return play


def num_bytes(state) -> int:
    """Counts what one state of a batch takes."""
    return sum(x.nbytes // len(x) for x in jax.tree.leaves(state))
