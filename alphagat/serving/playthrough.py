"""Replays games from their moves, caches the intermediate positions, and bounds the threads of such work."""

import asyncio
import collections
import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from starlette.concurrency import run_in_threadpool

from alphagat.errors import UserError
from alphagat.games.base import Game
from alphagat.runtime import sharding
from alphagat.serving import limits
from alphagat.serving.service import Busy
from alphagat.wording import counted

T = TypeVar("T")
MAX_KEPT = 2048  # positions


class Step(NamedTuple):
    """One move of a game.

    Attributes:
      action: its number.
      name: `game.action_name` of the action.
      player: the player who moved.
    """

    action: int
    name: str
    player: int


class Playthrough(NamedTuple):
    """A replayed game.

    Attributes:
      state: the current position, with numpy leaves.
      legal: its legal actions, ascending; empty after the end.
      steps: the moves that led to it.
      returns: `[num_players]` float64, the sum of each player's rewards.
    """

    state: Any
    legal: tuple[int, ...]
    steps: tuple[Step, ...]
    returns: np.ndarray


class Playthroughs:
    """Replays games on one board. Thread-safe.

    Chance events depend only on the seed and the ply, so equal moves give equal games.
    """

    def __init__(self, game: Game):
        self._game = game

        def key_of(seed: jax.Array, ply: jax.Array | int) -> jax.Array:
            return jax.random.fold_in(jax.random.key(seed), ply)

        self._init = jax.jit(lambda seed: _with_mask(game.init(key_of(seed, 0))))
        self._step = jax.jit(lambda state, action, seed, ply: _with_mask(game.step(state, action, key_of(seed, ply))))
        self._kept: collections.OrderedDict[bytes, Playthrough] = collections.OrderedDict()  # by digest of seed, moves
        self._lock = threading.Lock()  # one replay at a time
        self._host = sharding.host_device()  # faster than an accelerator for a single game

    def replay(self, seed: int, moves: Sequence[int | str], *, stops_at_end: bool = False) -> Playthrough:
        """Plays `moves`, action numbers or names, from the initial position.

        Args:
          stops_at_end: whether moves after the end of the game are left out.

        Raises:
          UserError: a move is not legal.
        """
        with self._lock, jax.default_device(self._host):
            digests = [hashlib.blake2b(str(seed).encode(), digest_size=16).digest()]
            for move in moves:
                digests.append(hashlib.blake2b(digests[-1] + repr(move).encode(), digest_size=16).digest())
            known = next((ply for ply in range(len(moves), -1, -1) if digests[ply] in self._kept), None)
            if known is None:
                known, game = 0, self._first(seed)
                self._keep(digests[0], game)
            else:
                game = self._kept[digests[known]]
                self._kept.move_to_end(digests[known])
            for ply in range(known, len(moves)):
                if stops_at_end and not game.legal:
                    break
                game = self._after(seed, game, moves[ply])
                self._keep(digests[ply + 1], game)
            return game

    def _first(self, seed: int) -> Playthrough:
        state, mask = jax.device_get(self._init(np.uint32(seed)))
        return Playthrough(state, _true(mask), (), np.zeros(self._game.num_players))

    def _after(self, seed: int, game: Playthrough, move: int | str) -> Playthrough:
        state, ply, legal = game.state, len(game.steps), game.legal
        options: list[int | str] = [*(self._game.names_of(state, legal) if isinstance(move, str) else legal)]
        if move not in options:
            reason = "it is not legal there" if legal else "the game is over"
            raise UserError(f"move {ply + 1}, {move}: {reason}; give legal moves only")
        action = legal[options.index(move)]
        step = Step(action, self._game.action_name(state, action), int(state.current_player))
        after, mask = jax.device_get(self._step(state, np.int32(action), np.uint32(seed), np.uint32(ply + 1)))
        return Playthrough(after, _true(mask), (*game.steps, step), game.returns + after.rewards)

    def _keep(self, digest: bytes, game: Playthrough) -> None:
        self._kept[digest] = game
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)


class Lanes:
    """Runs work on threads, one piece at a time in each lane, and `limits.MAX_WORKING` in all.

    Other pieces wait without a thread, so that those of other routes stay free. For use in one event loop.
    """

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(limits.MAX_WORKING)
        self._lanes: dict[str, asyncio.Semaphore] = {}
        self._pieces = collections.Counter[str]()  # by lane, in progress or waiting

    async def run(self, lane: str, work: Callable[..., T], *arguments: Any) -> T:
        """Returns `work(*arguments)`. Raises Busy if `limits.MAX_PIECES` pieces are in the lane."""
        if self._pieces[lane] >= limits.MAX_PIECES:
            raise Busy(f"{counted(limits.MAX_PIECES, 'request')} for {lane} already waiting")
        self._pieces[lane] += 1
        try:
            async with self._lanes.setdefault(lane, asyncio.Semaphore(1)), self._free:
                return await run_in_threadpool(work, *arguments)
        finally:
            self._pieces[lane] -= 1


def _with_mask(state: Any) -> tuple[Any, jax.Array]:
    return state, state.legal_action_mask


def _true(mask: np.ndarray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(mask).tolist())
