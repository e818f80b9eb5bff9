"""One game in progress: its position, play by move name, and undo."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from alphagat.errors import UserError
from alphagat.games.base import Game, StochasticGame
from alphagat.games.states import first_state


@dataclasses.dataclass(frozen=True, eq=False)
class Position:
    """One game in progress.

    Attributes:
      game: its board.
      state: one state with numpy leaves; `Engine.choose` gets only non-terminal ones.
      moves: `game.action_name` of each move from the initial position, e.g. `("b3", "c3", "pass")`.
      players: who made each move, 0 or 1.
    """

    game: Game
    state: Any
    moves: tuple[str, ...]
    players: tuple[int, ...]

    @property
    def player(self) -> int:
        """The player to move."""
        return int(self.state.current_player)

    def legal_actions(self) -> dict[str, int]:
        """Returns the legal actions as a dict keyed by `game.action_name`."""
        actions = np.flatnonzero(_legal_action_mask(self.state))
        return dict(zip(self.game.names_of(self.state, actions), actions.tolist()))


@jax.jit
def _legal_action_mask(state: Any) -> jax.Array:
    return state.legal_action_mask  # in chess, a computation


class IllegalMoveError(Exception):
    """The message is one line."""


class LiveGame:
    """A deterministic game from the initial or a given position.

    Attributes:
      game: its board.
    """

    def __init__(self, game: Game, state: Any = None):
        """Starts at `state`; None: the initial state. Raises UserError for games with chance moves."""
        if isinstance(game, StochasticGame):
            raise UserError(
                f"board {game.name}: it has chance moves, which are not supported here; use a game without them"
            )
        self.game = game
        first = first_state(game) if state is None else state
        self._positions = [Position(game, jax.device_get(first), (), ())]

    @property
    def position(self) -> Position:
        """The current position, which may be terminal."""
        return self._positions[-1]

    @property
    def is_over(self) -> bool:
        """Whether the game is over."""
        return bool(self.position.state.terminated)

    def play(self, name: str) -> None:
        """Plays a move by its case-insensitive name. Raises IllegalMoveError."""
        legal = {each.lower(): action for each, action in self.position.legal_actions().items()}
        if name.lower() not in legal:
            raise IllegalMoveError("the game is over" if self.is_over else f"{name} is illegal here")
        self.play_action(legal[name.lower()])

    def play_action(self, action: int) -> None:
        """Plays a legal action."""
        now = self.position
        name = self.game.action_name(now.state, action)
        after = step_of(self.game)(now.state, np.int32(action))
        self._positions.append(Position(self.game, after, (*now.moves, name), (*now.players, now.player)))

    def undo(self) -> None:
        """Takes back the last move. Raises IllegalMoveError if there is none."""
        if len(self._positions) == 1:
            raise IllegalMoveError("there is no move to take back")
        self._positions.pop()

    def outcome(self) -> float:
        """Returns the result for player 0; 0 while the game is in progress."""
        return float(self.position.state.rewards[0]) if self.is_over else 0.0


def line_names(game: Game, state: Any, actions: Sequence[int]) -> list[str]:
    """Returns the names of `actions`, legal moves played in turn from `state`, up to the first -1."""
    names, step = [], step_of(game)
    for action in actions:
        if action < 0:
            break
        names.append(game.action_name(state, int(action)))
        if not game.has_fixed_names:
            state = step(state, np.int32(action))
    return names


@functools.lru_cache(maxsize=64)
def step_of(game: Game) -> Callable[[Any, np.int32], Any]:
    """Returns the compiled `step(state, action)` of a deterministic game, with states on the host."""
    step, key = jax.jit(game.step), jax.random.key(0)
    return lambda state, action: jax.device_get(step(state, action, key))
