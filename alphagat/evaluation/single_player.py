"""Scores in single-player games."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from alphagat.evaluation.players import Act, Player, check_legal, choose
from alphagat.evaluation.statistics import mean_interval
from alphagat.games.base import Game
from alphagat.games.states import select
from alphagat.runtime import preemption, sharding


@dataclasses.dataclass(frozen=True, eq=False)
class Scores:
    """Scores of one player.

    Attributes:
      scores: `[N]` float32, the sum of the rewards of each game.
      plies: `[N]` int32.
      achievements: `[N]` int32, `Game.achievement` of each final state; None if the game has none.
    """

    scores: np.ndarray
    plies: np.ndarray
    achievements: np.ndarray | None = None

    @property
    def mean(self) -> float:
        return float(self.scores.mean(dtype=np.float64))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the mean."""
        return mean_interval(self.scores)

    def ratio_to(self, other: "Scores") -> float:
        """Returns the ratio of the mean to that of `other`; NaN if that is 0."""
        return self.mean / other.mean if other.mean else math.nan

    def shares(self) -> dict[int, float]:
        """Returns the share of games that achieved at least each of the numbers achieved, largest first."""
        if self.achievements is None:
            return {}
        numbers = np.unique(self.achievements)[::-1]
        return {int(number): float((self.achievements >= number).mean()) for number in numbers}


class Solitaire(NamedTuple):
    """Games on one device.

    Attributes:
      states: `[N]`.
      keys: `[N]`, one per game.
      scores: `[N]` float32, the sum of the rewards so far.
      plies: `[N]` int32.
    """

    states: Any
    keys: jax.Array
    scores: jax.Array
    plies: jax.Array


def play_alone(game: Game, player: Player, num_games: int, key: jax.Array, mesh: Mesh | None = None) -> Scores:
    """Plays `num_games` games in one batch, sharded over the mesh (None: one device of this process).

    There is no ply cap: the call does not return before every game has ended by the rules.

    Raises:
      UserError: the player makes an illegal move.
      Preempted: a request to stop has arrived.
    """
    mesh = sharding.make_local_mesh() if mesh is None else mesh
    num_devices = mesh.shape[sharding.DATA]
    padded = -(-num_games // num_devices) * num_devices
    params = sharding.place(player.params, sharding.replicated(mesh))
    keys = sharding.place(jax.random.split(key, padded), sharding.sharded(mesh))
    start, play_ply, achievements = _compile_play(game, player.act, mesh)
    games, num_over, ply = start(keys), 0, 0
    while num_over < padded:
        preemption.check()
        games, over, num_illegal = play_ply(params, np.int32(ply), games)
        num_over, ply = int(over), ply + 1
        check_legal(player.name, int(num_illegal))
    played = games.scores, games.plies, achievements(games.states)
    return Scores(*jax.tree.map(lambda values: sharding.fetch(values)[:num_games], played))


@functools.lru_cache(maxsize=16)
def _compile_play(game: Game, act: Act, mesh: Mesh) -> tuple[Callable, Callable, Callable]:
    """Returns `start(keys)`, `play_ply(params, ply, games)` and `achievements(states)`.

    `play_ply` consumes its games, and also returns how many are over and how many moves were illegal.
    """

    def play_ply(params: Any, ply: jax.Array, games: Solitaire) -> tuple[Solitaire, jax.Array, jax.Array]:
        games, num_illegal = _play_ply(game, act, params, ply, games)
        return games, *jax.lax.psum((games.states.terminated.sum(), num_illegal), sharding.DATA)

    replicated, sharded = sharding.REPLICATED, sharding.SHARDED
    start = sharding.over_data(functools.partial(_start, game), mesh, sharded, sharded)
    play_ply = sharding.over_data(play_ply, mesh, (replicated, replicated, sharded), (sharded, replicated, replicated))
    achievements = sharding.over_data(jax.vmap(game.achievement), mesh, sharded, sharded)
    return jax.jit(start), jax.jit(play_ply, donate_argnums=2), jax.jit(achievements)


def _split(keys: jax.Array) -> tuple[jax.Array, jax.Array]:
    pairs = jax.vmap(jax.random.split)(keys)
    return pairs[:, 0], pairs[:, 1]


def _start(game: Game, keys: jax.Array) -> Solitaire:
    """Starts one game per key."""
    init_keys, keys = _split(keys)
    return Solitaire(jax.vmap(game.init)(init_keys), keys, jnp.zeros(len(keys)), jnp.zeros(len(keys), jnp.int32))


def _play_ply(game: Game, act: Act, params: Any, ply: jax.Array, games: Solitaire) -> tuple[Solitaire, jax.Array]:
    """Plays one move in each game that is not over. Also returns how many of them are illegal."""
    act_keys, step_keys = _split(jax.vmap(jax.random.fold_in, in_axes=(0, None))(games.keys, ply))
    actions, is_legal = choose(act, params, act_keys[0], games.states)
    after = jax.vmap(game.step)(games.states, actions, step_keys)
    running = ~games.states.terminated
    games = games._replace(
        states=select(running, after, games.states),
        scores=games.scores + jnp.where(running, after.rewards[:, 0], 0.0),
        plies=games.plies + running,
    )
    return games, (running & ~is_legal).sum()
