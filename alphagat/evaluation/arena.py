"""Matches: each opening is played twice with colours swapped, all games in one compiled program."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from alphagat.errors import UserError
from alphagat.evaluation.match_result import FORFEIT_DTYPE, MatchResult
from alphagat.evaluation.openings import Openings
from alphagat.evaluation.players import Act, Player
from alphagat.games.base import Game
from alphagat.games.batches import count
from alphagat.games.states import select
from alphagat.runtime import sharding


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

    With a mesh, the openings are sharded over its `data` axis, padded to a multiple of the devices; padding games are
    dropped. All games on a device share a key, so games of stochastic players depend on the number of devices; those
    of deterministic players do not. The program is compiled once per pair of `act`s and shape.

    Args:
      progress: receives the number of games that are over, after each round, in a thread of JAX. The mesh may then be
        sharded over `data` only.

    Raises:
      UserError: the game is not a two-player game.
    """
    if game.num_players != 2:
        raise UserError(f"board {game.name}: a match needs a game for two players")
    num_openings = count(openings.states)
    num_devices = 1 if mesh is None else mesh.shape[sharding.DATA]
    # Blocks have equal size and are keyed by number, so the key does not depend on the device.
    rows = np.resize(np.arange(num_openings), -(-num_openings // num_devices) * num_devices)
    states = jax.tree.map(lambda x: np.asarray(x)[rows], openings.states)
    blocks = np.arange(num_devices, dtype=np.int32)
    arguments = (player_a.params, player_b.params, key)
    if mesh is not None:
        arguments = sharding.place(arguments, sharding.replicated(mesh))
        states, blocks = sharding.place((states, blocks), sharding.sharded(mesh))
    program = _compile_match(game, player_a.act, player_b.act, mesh, progress is not None)
    with _told(progress, 2 * num_openings):
        played = jax.block_until_ready(program(*arguments, blocks, states))
    outcomes, plies, actions = (np.swapaxes(sharding.fetch(x)[:num_openings], 0, 1) for x in played)
    return MatchResult(outcomes, plies, actions, forfeits=np.full(outcomes.shape, "", dtype=FORFEIT_DTYPE))


# The listener of the match in progress: it receives the number of a block and of its games that are over. It is not an
# argument of the program, which is compiled once for all listeners.
_listeners: list[Callable[[int, int], None]] = []


@contextlib.contextmanager
def _told(progress: Callable[[int], None] | None, num_games: int) -> Iterator[None]:
    """Passes the number of games that are over in all blocks to `progress`; padding games do not count."""
    if progress is None:
        yield
        return
    over: dict[int, int] = {}

    def listen(block: int, done: int) -> None:
        over[block] = done
        progress(min(sum(over.values()), num_games))

    _listeners.append(listen)
    try:
        yield
        jax.effects_barrier()
    finally:
        _listeners.remove(listen)


def _tell(block: jax.Array, done: jax.Array) -> None:
    for listen in _listeners:
        listen(int(block), int(done))


@functools.lru_cache(maxsize=64)
def _compile_match(game: Game, act_a: Act, act_b: Act, mesh: Mesh | None, is_told: bool) -> Callable:
    """Returns the program of one match; its results are `[N, 2]` outcomes and plies, and `[N, 2, T]` actions."""

    def play(params_a: Any, params_b: Any, key: jax.Array, blocks: jax.Array, states: Any) -> tuple:
        key = jax.random.fold_in(key, blocks[0])

        def tell(done: jax.Array) -> None:
            if is_told:
                jax.debug.callback(_tell, blocks[0], done.sum())

        games = _play_to_end(game, act_a, act_b, params_a, params_b, key, set_up(game, states), tell)
        results = games.outcomes, games.plies, games.actions
        return jax.tree.map(lambda x: jnp.swapaxes(x.reshape(2, -1, *x.shape[1:]), 0, 1), results)

    if mesh is None:
        return jax.jit(play)
    replicated, sharded = sharding.REPLICATED, sharding.SHARDED
    # The program has no collectives, so no device waits for another.
    specs = (replicated, replicated, replicated, sharded, sharded)
    return jax.jit(sharding.over_data(play, mesh, specs, sharded, calls_back=is_told))


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


def _play_to_end(
    game: Game,
    act_a: Act,
    act_b: Act,
    params_a: Any,
    params_b: Any,
    key: jax.Array,
    games: Games,
    tell: Callable[[jax.Array], None],
) -> Games:
    """Plays rounds until all games are over; in each, A moves in up to N games and B in up to N others.

    Each round sorts the games: A to move, then finished, then B to move. A moves in the first half, B in the second.
    No game waits if players alternate; otherwise games beyond a half wait for a round.
    """
    half = games.done.shape[0] // 2

    def play_round(carry: tuple) -> tuple:
        number, games = carry
        key_a, key_b, step_key = jax.random.split(jax.random.fold_in(key, number), 3)
        a_moves = games.states.current_player.astype(jnp.int32) == games.a_player
        rank = jnp.where(games.done, 1, jnp.where(a_moves, 0, 2))
        order = jnp.argsort(rank, stable=True)
        ordered = jax.tree.map(lambda x: x[order], games.states)
        halves = [jax.tree.map(lambda x, part=part: x[part], ordered) for part in (slice(half), slice(half, None))]
        actions = jnp.concatenate([act_a(params_a, key_a, halves[0]), act_b(params_b, key_b, halves[1])])
        moves = rank[order] == jnp.where(jnp.arange(2 * half) < half, 0, 2)
        # Undo the sort.
        actions = jnp.zeros(2 * half, jnp.int32).at[order].set(actions)
        moves = jnp.zeros(2 * half, bool).at[order].set(moves)
        games = step(game, games, actions, moves, step_key)
        tell(games.done)
        return number + 1, games

    start = (jnp.int32(0), games)
    return jax.lax.while_loop(lambda carry: ~carry[1].done.all(), play_round, start)[1]


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
