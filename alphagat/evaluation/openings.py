"""Distinct openings for matches, and random positions for tests of a player."""

import functools
import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.bounds import Limits, check_integer
from alphagat.errors import UserError
from alphagat.evaluation.rollout import uniform_actions
from alphagat.games.base import Game
from alphagat.games.batches import (
    CHUNK,
    chunks,
    compile_describe,
    compile_init,
    count,
    legal_actions,
    play_all,
    take,
)
from alphagat.games.states import draws_its_start, select
from alphagat.games.symmetries import Symmetries
from alphagat.wording import counted

MAX_CANDIDATES = 65_536
MAX_ROUNDS = 1_000
POSITIVE, NOT_NEGATIVE = Limits(at_least=1), Limits(at_least=0)


class Openings(NamedTuple):
    """Non-terminal positions from which games start.

    Attributes:
      states: `[N]`.
      actions: `[N, P]` int32, the moves from the initial position to each opening.
    """

    states: Any
    actions: np.ndarray

    def take(self, rows: Any) -> "Openings":
        return Openings(take(self.states, rows), self.actions[rows])


def distinct_openings(game: Game, num_openings: int, seed: int) -> Openings:
    """Draws distinct openings of equal length: the fewest plies after which enough of them exist.

    Two positions are equal if they have the same player to move, legal actions, edges and features but
    `history_features`; those, and other fields of a state, depend on the order of moves. Symmetric positions also count
    as equal, because games from both add little information. Symmetric images are used only if the board has too few
    openings otherwise. If a ply has more than `MAX_CANDIDATES` moves, a random subset of them is played.

    Raises:
      UserError: `num_openings` is not positive, or no ply of the board has enough positions.
    """
    num_openings = check_integer("num_openings", num_openings, POSITIVE)
    generator = np.random.default_rng(seed)
    limit = max(MAX_CANDIDATES, 4 * num_openings)
    openings, with_images, most = _first_positions(game, seed, num_openings), None, 1
    for _ in range(game.max_plies):
        shuffled = openings.take(generator.permutation(count(openings.states)))
        apart = shuffled.take(distinct(game, shuffled.states, game.symmetries))
        if count(apart.states) >= num_openings:
            return _to_device(apart.take(slice(num_openings)))
        if with_images is None and count(openings.states) >= num_openings:
            with_images = shuffled.take(slice(num_openings))
        if count(openings.states) == 0:
            break
        openings = _next_ply(game, openings, limit, generator)
        most = max(most, count(openings.states))
    if with_images is not None:
        return _to_device(with_images)
    raise UserError(
        f"board {game.name}: it has at most {counted(most, 'distinct opening')} after any number of plies, fewer than "
        f"the {num_openings:,} requested: play at most {2 * most:,} games, two per opening"
    )


def openings_after(game: Game, num_plies: int, seed: int, num_openings: int | None = None) -> Openings:
    """Returns all distinct openings of `num_plies` plies, or a uniform draw of `num_openings` of them.

    Raises:
      UserError: a number is negative or `num_openings` is 0, or there are fewer openings, or more than
        `MAX_CANDIDATES`.
    """
    num_plies = check_integer("num_plies", num_plies, NOT_NEGATIVE)
    if num_openings is not None:
        num_openings = check_integer("num_openings", num_openings, POSITIVE)
    generator = np.random.default_rng(seed)
    openings = _first_positions(game, seed, 1)
    for ply in range(num_plies):
        openings = _next_ply(game, openings, None, generator)
        if count(openings.states) == 0:
            raise UserError(
                f"board {game.name}: every game is over after {counted(ply + 1, 'ply')}; use openings of fewer plies"
            )
    available = count(openings.states)
    requested = available if num_openings is None else num_openings
    if available < requested:
        raise UserError(
            f"board {game.name}: it has {counted(available, 'distinct opening')} of {counted(num_plies, 'ply')}, fewer "
            f"than the {requested:,} requested: play at most {2 * available:,} games, two per opening"
        )
    return _draw(openings, requested, generator)


def _first_positions(game: Game, seed: int, number: int) -> Openings:
    """Returns the first position, or as many as asked for if the game draws them."""
    keys = jax.random.split(jax.random.key(seed), number) if draws_its_start(game) else jax.random.key(seed)[None]
    return Openings(jax.device_get(compile_init(game)(keys)), np.zeros((len(keys), 0), np.int32))


def _next_ply(game: Game, openings: Openings, limit: int | None, generator: np.random.Generator) -> Openings:
    """Plays every legal move of every opening, or a random `limit` of them.

    Raises:
      UserError: `limit` is None and there are more than `MAX_CANDIDATES` moves.
    """
    parents, actions = np.nonzero(legal_actions(game, openings.states))
    if limit is None and len(parents) > MAX_CANDIDATES:
        plies = openings.actions.shape[1] + 1
        raise UserError(
            f"board {game.name}: {len(parents):,} openings of {counted(plies, 'ply')} exceed the limit of "
            f"{MAX_CANDIDATES:,}; use at most {counted(plies - 1, 'ply')}"
        )
    if limit is not None and len(parents) > limit:
        drawn = generator.choice(len(parents), limit, replace=False)
        parents, actions = parents[drawn], actions[drawn]
    states = play_all(game, openings.states, parents, actions)
    kept = distinct(game, states)
    moves = np.concatenate([openings.actions[parents], actions[:, None]], axis=1).astype(np.int32)
    return Openings(take(states, kept), moves[kept])


def _draw(openings: Openings, num_openings: int, generator: np.random.Generator) -> Openings:
    return _to_device(openings.take(generator.choice(count(openings.states), num_openings, replace=False)))


def _to_device(openings: Openings) -> Openings:
    return openings._replace(states=jax.device_put(openings.states))


def random_positions(game: Game, num_positions: int, min_plies: int, max_plies: int, seed: int) -> Any:
    """Draws `[num_positions]` non-terminal positions by uniformly random play.

    The number of plies of each position is drawn first, uniformly from `min_plies` to `max_plies`. A game that ends
    earlier is replayed, so every number of plies is equally frequent. Positions may repeat.

    Raises:
      UserError: `num_positions` is not positive, the plies are out of order, or games of this length are too rare.
    """
    num_positions = check_integer("num_positions", num_positions, POSITIVE)
    if not 0 <= min_plies <= max_plies:
        raise UserError(
            f"min_plies={min_plies} and max_plies={max_plies}: they must satisfy 0 <= min_plies <= max_plies"
        )
    plies = np.random.default_rng(seed).integers(min_plies, max_plies + 1, num_positions)
    batch = max(num_positions, CHUNK)
    play = _compile_random_play(game)
    missing, positions = np.arange(num_positions), None
    for attempt in range(MAX_ROUNDS):
        slots = np.resize(missing, batch)  # several attempts per missing slot; the first survivor fills it
        states = jax.device_get(play(jax.random.fold_in(jax.random.key(seed), attempt), plies[slots], max_plies))
        if positions is None:
            positions = jax.tree.map(lambda x: np.zeros((num_positions, *x.shape[1:]), x.dtype), states)
        filled, first = np.unique(np.where(states.terminated, -1, slots), return_index=True)
        filled, first = filled[filled >= 0], first[filled >= 0]
        for target, source in zip(jax.tree.leaves(positions), jax.tree.leaves(states), strict=True):
            target[filled] = source[first]
        missing = np.setdiff1d(missing, filled)
        if len(missing) == 0:
            return jax.device_put(positions)
    raise UserError(
        f"board {game.name}: random games rarely last {plies[missing].max()} plies: lower max_plies={max_plies}"
    )


def _play_randomly(game: Game, key: jax.Array, plies: jax.Array, max_plies: jax.Array) -> Any:
    """Plays `plies` `[B]` uniformly random moves from the start."""
    batch_size = plies.shape[0]
    init_key, play_key = jax.random.split(key)

    def play(ply: jax.Array, states: Any) -> Any:
        bits_key, step_key = jax.random.split(jax.random.fold_in(play_key, ply))
        actions = uniform_actions(jax.random.bits(bits_key, (batch_size,), jnp.uint32), states.legal_action_mask)
        after = jax.vmap(game.step)(states, actions, jax.random.split(step_key, batch_size))
        return select(ply < plies, after, states)

    return jax.lax.fori_loop(0, max_plies, play, jax.vmap(game.init)(jax.random.split(init_key, batch_size)))


def distinct(game: Game, positions: Any, symmetries: Symmetries | None = None) -> np.ndarray:
    """Returns the rows of the distinct, non-terminal positions among `[N]`: the first row of each.

    Args:
      positions: on the host.
      symmetries: positions that these map to each other count as equal; None: only identical positions do.
    """
    describe, kept, seen = compile_describe(game), [], set()
    everything = [slice(None)]
    images = (symmetries.node_permutations, symmetries.action_permutations) if symmetries else (everything, everything)
    for rows, padded in chunks(count(positions)):
        states = take(positions, padded)
        features, edges, masks = jax.device_get(describe(states))
        features = np.delete(features, game.history_features, axis=-1)
        own_edges = np.zeros((*features.shape[:2], features.shape[1], 0)) if edges is None else edges
        for row, player, nodes, between, legal in zip(rows, states.current_player, features, own_edges, masks):
            if positions.terminated[row]:
                continue
            seen_as = min(
                nodes[vertices].tobytes() + between[vertices][:, vertices].tobytes() + legal[actions].tobytes()
                for vertices, actions in zip(*images)
            )
            digest = hashlib.blake2b(bytes([player]) + seen_as, digest_size=16).digest()  # boards have large features
            if digest not in seen:
                seen.add(digest)
                kept.append(row)
    return np.asarray(kept, int)


@functools.lru_cache(maxsize=64)
def _compile_random_play(game: Game) -> Callable:
    return jax.jit(functools.partial(_play_randomly, game))
