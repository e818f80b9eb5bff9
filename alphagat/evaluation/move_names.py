"""Move histories by name."""

import dataclasses
from typing import Any

import jax
import numpy as np

from alphagat.games.base import Game
from alphagat.games.batches import compile_init, compile_step, take

STOP = -1  # fills action arrays after the end of a game


@dataclasses.dataclass
class History:
    """The moves of one game from the initial position.

    Attributes:
      moves: `game.action_name` of each move.
      players: who made each move, 0 or 1.
    """

    moves: list[str]
    players: list[int]

    def add(self, game: Game, state: Any, action: int) -> None:
        """Appends the move `action` in `state`, a single state with numpy leaves."""
        self.moves.append(game.action_name(state, action))
        self.players.append(int(state.current_player))


def replay(game: Game, actions: np.ndarray) -> list[History]:
    """Names the moves of `[N, T]` actions of deterministic games; rows are padded with `STOP`."""
    num_games, num_plies = actions.shape
    histories = [History([], []) for _ in range(num_games)]
    step, keys = compile_step(game), jax.random.split(jax.random.key(0), num_games)
    states = jax.device_get(compile_init(game)(keys))
    for ply in range(num_plies):
        going_on = actions[:, ply] != STOP
        if not going_on.any():
            break
        for row in np.flatnonzero(going_on):
            histories[row].add(game, take(states, row), int(actions[row, ply]))
        states = jax.device_get(step(states, np.maximum(actions[:, ply], 0).astype(np.int32), keys))
    return histories
