"""Matches: each opening is played twice with colours swapped, all games at once in compiled rounds."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from alphagat.errors import UserError
from alphagat.evaluation.match_result import FORFEIT_DTYPE, MatchResult
from alphagat.evaluation.openings import Openings
from alphagat.evaluation.players import Act, Player, check_legal, choose
from alphagat.games.base import Game
from alphagat.games.batches import count, take
from alphagat.games.states import select
from alphagat.runtime import preemption, sharding


class Games(NamedTuple):
    """All games of a match on one device: first those with A as player 0, then the same openings with A as player 1.

    Attributes:
      states: `[2N]`.
      a_player: `[2N]` int32, the player number of A.
      outcomes: `[2N]` float32, the sum of A's rewards so far.
      plies: `[2N]` int32, moves since the opening.
      actions: `[2N, T]` int32, these moves; -1 from `plies` on.
      done: `[2N]` bool.
    """

    states: Any
    a_player: jax.Array
    outcomes: jax.Array
    plies: jax.Array
    actions: jax.Array
    done: jax.Array


def play_match(
    game: Game,
    player_a: Player,
    player_b: Player,
    openings: Openings,
    key: jax.Array,
    mesh: Mesh | None = None,
    progress: Callable[[int], None] | None = None,
) -> MatchResult:
    """Plays two games from each of the `[N]` openings, and returns A's results.

    A game is truncated `game.max_plies` plies after its opening and then pays `game.truncation_rewards`.

    The openings are sharded over the `data` axis of the mesh, padded to a multiple of the devices; padding games are
    dropped. All games on a device share a key, so games of stochastic players depend on the number of devices; those
    of deterministic players do not. The programs are compiled once per pair of `act`s and shape.

    Args:
      mesh: None: one device of this process.
      progress: receives the number of games that are over, after each round.

    Raises:
      UserError: the game is not a two-player game, or a player makes an illegal move.
      Preempted: a request to stop has arrived.
    """
    if game.num_players != 2:
        raise UserError(f"board {game.name}: a match needs a game for two players")
    mesh = sharding.make_local_mesh() if mesh is None else mesh
    num_openings, num_devices = count(openings.states), mesh.shape[sharding.DATA]
    # Blocks have equal size and are keyed by number, so the key does not depend on the device.
    rows = np.resize(np.arange(num_openings), -(-num_openings // num_devices) * num_devices)
    blocked = take(jax.device_get(openings.states), rows), np.arange(num_devices, dtype=np.int32)
    states, blocks = sharding.place(blocked, sharding.sharded(mesh))
    arguments = sharding.place((player_a.params, player_b.params, key), sharding.replicated(mesh))
    programs = _compile_match(game, player_a.act, player_b.act, mesh)
    games, num_over, number = programs.start(states), 0, 0
    while num_over < 2 * len(rows):
        preemption.check()
        games, over, illegal = programs.play_round(*arguments, blocks, np.int32(number), games)
        num_over, number = int(over), number + 1
        for player, num_illegal in zip((player_a, player_b), illegal):
            check_legal(player.name, int(num_illegal))
        if progress is not None:
            progress(min(num_over, 2 * num_openings))

    def by_player(column: jax.Array) -> np.ndarray:
        """Reorders `[D * 2N, ...]` of D devices to `[2, openings, ...]`."""
        values = sharding.fetch(column)
        values = values.reshape(num_devices, 2, -1, *values.shape[1:]).swapaxes(0, 1)
        return values.reshape(2, -1, *values.shape[3:])[:, :num_openings]

    outcomes, plies, actions = map(by_player, (games.outcomes, games.plies, games.actions))
    return MatchResult(outcomes, plies, actions, forfeits=np.full(outcomes.shape, "", dtype=FORFEIT_DTYPE))


class MatchPrograms(NamedTuple):
    """The compiled parts of a match.

    Attributes:
      start: `start(states) -> Games`, of the `[N]` openings.
      play_round: `play_round(params_a, params_b, key, blocks, number, games) -> (Games, over, illegal)`; consumes its
        games. On all devices, `over` `[]` counts the games that are over, and `illegal` the illegal moves of A and B.
    """

    start: Callable[[Any], Games]
    play_round: Callable[..., tuple[Games, jax.Array, tuple[jax.Array, jax.Array]]]


@functools.lru_cache(maxsize=64)
def _compile_match(game: Game, act_a: Act, act_b: Act, mesh: Mesh) -> MatchPrograms:
    def play_round(params_a: Any, params_b: Any, key: jax.Array, blocks: jax.Array, number: jax.Array, games: Games):
        key = jax.random.fold_in(jax.random.fold_in(key, blocks[0]), number)
        games, illegal = _play_round(game, act_a, act_b, params_a, params_b, key, games)
        return games, *jax.lax.psum((games.done.sum(), illegal), sharding.DATA)

    replicated, sharded = sharding.REPLICATED, sharding.SHARDED
    specs = (replicated, replicated, replicated, sharded, replicated, sharded)
    start = sharding.over_data(functools.partial(set_up, game), mesh, sharded, sharded)
    play_round = sharding.over_data(play_round, mesh, specs, (sharded, replicated, replicated))
    return MatchPrograms(jax.jit(start), jax.jit(play_round, donate_argnums=5))


def set_up(game: Game, states: Any) -> Games:
    """Starts two games from each of `[N]` states."""
    num_openings = states.terminated.shape[0]
    return Games(
        states=jax.tree.map(lambda x: jnp.concatenate([x, x]), states),
        a_player=jnp.repeat(jnp.arange(2), num_openings, total_repeat_length=2 * num_openings),
        outcomes=jnp.zeros(2 * num_openings),
        plies=jnp.zeros(2 * num_openings, jnp.int32),
        actions=jnp.full((2 * num_openings, game.max_plies), -1, jnp.int32),
        done=jnp.concatenate([states.terminated, states.terminated]),
    )


def _play_round(
    game: Game, act_a: Act, act_b: Act, params_a: Any, params_b: Any, key: jax.Array, games: Games
) -> tuple[Games, tuple[jax.Array, jax.Array]]:
    """Plays a round: A moves in up to N games and B in up to N others. Also returns how many moves of each are illegal.

    It sorts the games: A to move, then finished, then B to move. A moves in the first half, B in the second. No game
    waits if players alternate; otherwise games beyond a half wait for a round.
    """
    half = games.done.shape[0] // 2
    key_a, key_b, step_key = jax.random.split(key, 3)
    a_moves = games.states.current_player.astype(jnp.int32) == games.a_player
    rank = jnp.where(games.done, 1, jnp.where(a_moves, 0, 2))
    order = jnp.argsort(rank, stable=True)
    ordered = take(games.states, order)
    halves = [take(ordered, part) for part in (slice(half), slice(half, None))]
    actions_a, is_legal_a = choose(act_a, params_a, key_a, halves[0])
    actions_b, is_legal_b = choose(act_b, params_b, key_b, halves[1])
    actions = jnp.concatenate([actions_a, actions_b])
    moves = rank[order] == jnp.where(jnp.arange(2 * half) < half, 0, 2)
    illegal = (moves[:half] & ~is_legal_a).sum(), (moves[half:] & ~is_legal_b).sum()
    # Undo the sort.
    actions = jnp.zeros(2 * half, jnp.int32).at[order].set(actions)
    moves = jnp.zeros(2 * half, bool).at[order].set(moves)
    return step(game, games, actions, moves, step_key), illegal


def step(game: Game, games: Games, actions: jax.Array, moves: jax.Array, key: jax.Array) -> Games:
    """Plays `actions` `[2N]` in the games selected by `moves` `[2N]`, and scores games that end or are truncated."""
    after = jax.vmap(game.step)(games.states, actions, jax.random.split(key, len(actions)))
    states = select(moves, after, games.states)
    plies = games.plies + moves
    is_cut = moves & ~states.terminated & (plies >= game.max_plies)
    rewards = states.rewards + jnp.where(is_cut[:, None], jax.vmap(game.truncation_rewards)(states), 0.0)
    paid = jnp.take_along_axis(rewards, games.a_player[:, None], axis=1)[:, 0]
    return games._replace(
        states=states,
        outcomes=games.outcomes + jnp.where(moves, paid, 0.0),
        plies=plies,
        actions=_note(games.actions, games.plies, actions, moves),
        done=games.done | (moves & (states.terminated | is_cut)),
    )


def _note(noted: jax.Array, plies: jax.Array, actions: jax.Array, moves: jax.Array) -> jax.Array:
    """Writes `actions` `[2N]` into `noted` `[2N, T]` at `plies` `[2N]`, for the games selected by `moves` `[2N]`."""
    columns = jnp.where(moves, plies, noted.shape[1])  # outside: dropped
    return noted.at[jnp.arange(len(noted)), columns].set(actions, mode="drop")
