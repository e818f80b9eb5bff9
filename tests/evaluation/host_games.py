"""Games on the host for the tests of engines."""

import contextlib
import functools
import os
import select
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from alphagat.evaluation.engines.base import Engine
from alphagat.evaluation.engines.process import GAME_FOLDERS
from alphagat.evaluation.live_game import Position
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.games.states import first_state

FAKE = Path(__file__).parent / "fake_engine.py"
KEY = jax.random.key(0)


def fake(protocol: str, *words: object) -> str:
    """Returns the command of the scripted engine."""
    return shlex.join([sys.executable, str(FAKE), protocol, *map(str, words)])


def with_child(command: str, log: Path) -> str:
    """Returns the command of a wrapper of an engine that starts another program and writes its process id to `log`."""
    return shlex.join(["sh", "-c", f"sleep 600 & echo $! > {shlex.quote(str(log))}; {command}"])


@contextlib.contextmanager
def watch_exit(log: Path) -> Iterator[None]:
    """Checks that the process whose id is in `log` exits within the block."""
    descriptor = os.pidfd_open(int(log.read_text()))
    yield
    assert select.select([descriptor], [], [], 5)[0]
    os.close(descriptor)


def is_installed(program: str) -> bool:
    return any(shutil.which(program, path=folder) for folder in (None, *GAME_FOLDERS))


def begin(game: Game) -> Position:
    return Position(game, jax.tree.map(np.asarray, first_state(game)), (), ())


def play(position: Position, action: int) -> Position:
    """Returns the position after one more move, which may be the last."""
    state = jax.tree.map(np.asarray, _compile_step(position.game)(position.state, np.int32(action), KEY))
    moves = (*position.moves, position.game.action_name(position.state, action))
    return Position(position.game, state, moves, (*position.players, position.player))


def position_after(board: str, *names: str) -> Position:
    position = begin(make_game(board))
    for name in names:
        position = play(position, position.legal_actions()[name])
    return position


def play_game(players: Sequence[Callable[[Position], int]], game: Game) -> list[Position]:
    """Plays one game and returns all of its positions. Every move has to be legal."""
    positions = [begin(game)]
    while not positions[-1].state.terminated:
        action = players[positions[-1].player](positions[-1])
        assert positions[-1].state.legal_action_mask[action]
        positions.append(play(positions[-1], action))
    return positions


def play_against_random(engine: Engine, game: Game, seed: int) -> list[Position]:
    """Plays a game in which the engine has the first move for even seeds."""
    random = np.random.default_rng(seed)

    def choose(position: Position) -> int:
        return int(random.choice(np.flatnonzero(position.state.legal_action_mask)))

    return play_game([engine.choose, choose] if seed % 2 == 0 else [choose, engine.choose], game)


def read_log(path: Path) -> list[str]:
    """Returns what the scripted engine has read."""
    return [line for line in path.read_text().splitlines() if not line.startswith("pid ")]


@functools.cache
def _compile_step(game: Game) -> Any:
    return jax.jit(game.step)
