"""One game as it is played: moves by the names that people call them, and taken back."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from alphagat.errors import UserError
from alphagat.evaluation.engines.base import Position
from alphagat.games.base import Game, StochasticGame
from alphagat.games.states import first_state


class IllegalMoveError(Exception):
    """The message is one line."""


class LiveGame:
    """A game without chance, from its first position or another one.

    Attributes:
      game: its board.
    """

    def __init__(self, game: Game, state: Any = None):
        """Begins at `state`; None: at the first position. Raises UserError where chance moves."""
        if isinstance(game, StochasticGame):
            raise UserError(f"board {game.name}: chance moves in it; take a game without")
        self.game = game
        first = first_state(game) if state is None else state
        self._positions = [Position(game, jax.tree.map(np.asarray, first), (), ())]

    @property
    def position(self) -> Position:
        """The position now, which may be the last."""
        return self._positions[-1]

    @property
    def is_over(self) -> bool:
        """Whether nobody can move any more."""
        return bool(self.position.state.terminated)

    def play(self, name: str) -> None:
        """Plays a move, by its name in any case. Raises IllegalMoveError."""
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
        """Takes the last move back. Raises IllegalMoveError where there is none."""
        if len(self._positions) == 1:
            raise IllegalMoveError("there is no move to take back")
        self._positions.pop()

    def outcome(self) -> float:
        """Returns what the game paid to player 0; 0 where it is not over."""
        return float(self.position.state.rewards[0]) if self.is_over else 0.0


def line_names(game: Game, state: Any, actions: Sequence[int]) -> list[str]:
    """Names the legal moves of a line from `state` on, up to the first -1."""
    names, step = [], step_of(game)
    depends = type(game).action_name is not Game.action_name  # on the position, as in chess
    for action in actions:
        if action < 0:
            break
        names.append(game.action_name(state, int(action)))
        if depends:
            state = step(state, np.int32(action))
    return names


@functools.lru_cache(maxsize=64)
def step_of(game: Game) -> Callable[[Any, np.int32], Any]:
    """Returns `step(state, action)` of a game without chance, compiled, on the host."""
    step, key = jax.jit(game.step), jax.random.key(0)
    return lambda state, action: jax.tree.map(np.asarray, step(state, action, key))
