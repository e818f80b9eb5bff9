"""Scores in single-player games."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from alphagat.evaluation.players import Act, Player
from alphagat.evaluation.statistics import mean_interval
from alphagat.games.base import Game
from alphagat.games.states import select
from alphagat.runtime import sharding


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

    def shares(self) -> dict[int, float]:
        """Returns the share of games that achieved at least each of the numbers achieved, largest first."""
        if self.achievements is None:
            return {}
        numbers = np.unique(self.achievements)[::-1]
        return {int(number): float((self.achievements >= number).mean()) for number in numbers}


def play_alone(game: Game, player: Player, num_games: int, key: jax.Array, mesh: Mesh | None = None) -> Scores:
    """Plays `num_games` games in one batch, sharded over the mesh if there is one.

    There is no ply cap: the call does not return before every game has ended by the rules.
    """
    num_devices = 1 if mesh is None else mesh.shape[sharding.DATA]
    padded = -(-num_games // num_devices) * num_devices
    params, keys = player.params, jax.random.split(key, padded)
    if mesh is not None:
        params = sharding.place(params, sharding.replicated(mesh))
        keys = sharding.place(keys, sharding.sharded(mesh))
    played = _compile_play(game, player.act, mesh)(params, keys)
    return Scores(*jax.tree.map(lambda values: sharding.fetch(values)[:num_games], played))


@functools.lru_cache(maxsize=16)
def _compile_play(game: Game, act: Act, mesh: Mesh | None):
    play = functools.partial(_play, game, act)
    if mesh is None:
        return jax.jit(play)
    specs = (sharding.REPLICATED, sharding.SHARDED)
    return jax.jit(sharding.over_data(play, mesh, specs, sharding.SHARDED))


def _play(game: Game, act: Act, params: Any, keys: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """Plays one game per key on one device; returns the fields of `Scores`."""
    num_games = len(keys)

    def split(keys: jax.Array) -> tuple[jax.Array, jax.Array]:
        pairs = jax.vmap(jax.random.split)(keys)
        return pairs[:, 0], pairs[:, 1]

    init_keys, ply_keys = split(keys)

    def play_ply(carry):
        states, scores, plies, ply = carry
        act_keys, step_keys = split(jax.vmap(jax.random.fold_in, in_axes=(0, None))(ply_keys, ply))
        after = jax.vmap(game.step)(states, act(params, act_keys[0], states), step_keys)
        running = ~states.terminated
        return (
            select(running, after, states),
            scores + jnp.where(running, after.rewards[:, 0], 0.0),
            plies + running,
            ply + 1,
        )

    start = jax.vmap(game.init)(init_keys), jnp.zeros(num_games), jnp.zeros(num_games, jnp.int32), jnp.int32(0)
    states, scores, plies, _ = jax.lax.while_loop(lambda carry: ~carry[0].terminated.all(), play_ply, start)
    return scores, plies, jax.vmap(game.achievement)(states)
