"""Exact values of small boards, from rules independent of the compiled ones.

The search of Hex 4x4 and 5x5 (`hex_solver`) shares only the table of neighbouring cells.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.errors import UserError
from alphagat.evaluation.hex_solver import HexSolver
from alphagat.evaluation.openings import distinct
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.games.batches import compile_init, concatenate, count, legal_actions, play_all, take
from alphagat.games.hex import HexGame
from alphagat.games.mnk import MnkGame

ILLEGAL = -2
MAX_CELLS = 9  # Hex 4x4 takes minutes by negamax, and has too many positions for a table
MAX_HEX_SIZE = 5

Position = tuple[int, int]  # bit sets of the stones of player 0 and player 1, bit `i` for cell `i`


class Solver:
    """Exact values of one board, computed on demand and cached.

    Values are +1, 0, -1 for a won, drawn, lost position, from the perspective of the player to move.
    """

    def __init__(
        self,
        game: Game,
        num_cells: int,
        has_won: Callable[[int, int], bool],
        search: Callable[[Position], int] | None = None,
    ):
        """Makes a solver.

        Args:
          has_won: `has_won(player, stones)` returns whether the player's stones win the game.
          search: returns the value of a non-terminal position; None: negamax.
        """
        self.game, self.num_cells, self.has_won = game, num_cells, has_won
        self._search = search or self._negamax
        self._values: dict[Position, int] = {}

    def action_values(self, state: Any) -> np.ndarray:
        """Returns `[A]` int8, each action's value for the player to move; `ILLEGAL` for illegal actions."""
        position = self._position(state)
        values = np.full(self.num_cells, ILLEGAL, np.int8)
        for action in self._empty_cells(position):
            values[action] = self._value_after(position, action)
        return values

    def _position(self, state: Any) -> Position:
        stones = stone_owners(self.game, jax.device_get(state))
        first, second = (sum(1 << int(cell) for cell in np.flatnonzero(stones == owner)) for owner in (1, 2))
        return first, second

    def _empty_cells(self, position: Position) -> list[int]:
        taken = position[0] | position[1]
        return [cell for cell in range(self.num_cells) if not taken >> cell & 1]

    def _value(self, position: Position) -> int:
        if position not in self._values:
            self._values[position] = self._search(position)
        return self._values[position]

    def _negamax(self, position: Position) -> int:
        best = ILLEGAL
        for action in self._empty_cells(position):
            best = max(best, self._value_after(position, action))
            if best == 1:
                break
        return best

    def _value_after(self, position: Position, action: int) -> int:
        player = (position[0] | position[1]).bit_count() % 2
        stones = position[player] | 1 << action
        if self.has_won(player, stones):
            return 1
        after = (stones, position[1]) if player == 0 else (position[0], stones)
        return -self._value(after) if self._empty_cells(after) else 0


class SolvedPositions(NamedTuple):
    """All reachable non-terminal positions of a board.

    Attributes:
      states: `[P]`.
      values: `[P]` int8, from the perspective of the player to move.
      action_values: `[P, A]` int8, each action's value from the same view; `ILLEGAL` for illegal actions.
    """

    states: Any
    values: np.ndarray
    action_values: np.ndarray


def solve(board_name: str) -> Solver:
    """Returns the solver of a board: tic_tac_toe, or Hex up to 5x5 without the swap rule.

    Raises:
      UserError: the board is none of these.
    """
    if (solver := _find_solver(board_name)) is None:
        solved = f"tic_tac_toe or hex:2 to hex:{MAX_HEX_SIZE} (alphagat match and oracles also solve connect_four)"
        raise UserError(f"board {board_name}: there is no exact solver; use {solved}")
    return solver


@functools.lru_cache(maxsize=16)
def _find_solver(board_name: str) -> Solver | None:
    game = make_game(board_name)
    if isinstance(game, MnkGame) and not game.gravity and game.rows * game.columns <= MAX_CELLS:
        lines = _lines(game.rows, game.columns, game.run)
        return Solver(game, game.rows * game.columns, lambda _, stones: any(stones & line == line for line in lines))
    if isinstance(game, HexGame) and not game.swap and game.size <= MAX_HEX_SIZE:
        search = None if game.size**2 <= MAX_CELLS else HexSolver(game.size).value
        return Solver(game, game.size**2, functools.partial(_connects, game.size), search)
    return None


@functools.lru_cache(maxsize=16)
def reachable_positions(game: Game) -> SolvedPositions:
    """Enumerates and solves all reachable positions.

    Raises:
      UserError: the board has no solver, or too many positions.
    """
    solver = _find_solver(game.name)
    if solver is None or solver.num_cells > MAX_CELLS:
        table = "there is no exact solver by table; use tic_tac_toe, hex:2 or hex:3"
        raise UserError(f"board {game.name}: {table} (alphagat match also solves connect_four, hex:4 and hex:5)")
    layer = jax.device_get(compile_init(game)(jax.random.key(0)[None]))
    layers = []
    while count(layer):
        layers.append(layer)
        parents, actions = np.nonzero(legal_actions(game, layer))
        after = play_all(game, layer, parents, actions)
        layer = take(after, distinct(game, after))
    states = concatenate(layers)
    rows = range(count(states))
    action_values = np.stack([solver.action_values(take(states, row)) for row in rows])
    return SolvedPositions(states, action_values.max(axis=1), action_values)


@functools.lru_cache(maxsize=16)
def make_solved_table(game: Game) -> np.ndarray:
    """Returns `[3 ** cells, A]` bool, indexed by `position_code`: the actions that preserve the exact value.

    Raises:
      UserError: the board has no solver.
    """
    solved = reachable_positions(game)
    table = np.zeros((3 ** solve(game.name).num_cells, game.num_actions), bool)
    table[np.asarray(position_code(game, solved.states))] = solved.action_values == solved.values[:, None]
    return table


def position_code(game: Game, states: Any) -> jax.Array:
    """Returns `[B]` int32 codes of positions: their stones as base-3 digits."""
    stones = stone_owners(game, states).astype(jnp.int32)
    return (stones * 3 ** np.arange(stones.shape[-1], dtype=np.int32)[None, :]).sum(axis=-1)


def stone_owners(game: Game, states: Any) -> Any:
    """Returns `[..., cells]`: 0 empty, 1 a stone of player 0, 2 of player 1."""
    if isinstance(game, HexGame):
        return (states.cells > 0) + 2 * (states.cells < 0)
    return states.board


def _lines(rows: int, columns: int, run: int) -> list[int]:
    """Lists the bit sets of `run` cells in a line."""
    lines = []
    for row in range(rows):
        for column in range(columns):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                cells = [(row + i * down, column + i * right) for i in range(run)]
                if all(0 <= r < rows and 0 <= c < columns for r, c in cells):
                    lines.append(sum(1 << r * columns + c for r, c in cells))
    return lines


def _connects(size: int, player: int, stones: int) -> bool:
    """Returns whether a path of stones connects top and bottom (player 0) or left and right (player 1) in Hex."""
    start = [(0, i) if player == 0 else (i, 0) for i in range(size)]
    reached = {cell for cell in start if stones >> cell[0] * size + cell[1] & 1}
    front = list(reached)
    while front:
        row, column = front.pop()
        if (row, column)[player] == size - 1:
            return True
        for down, right in ((0, 1), (0, -1), (1, 0), (-1, 0), (1, -1), (-1, 1)):
            cell = (row + down, column + right)
            if cell not in reached and min(cell) >= 0 and max(cell) < size and stones >> cell[0] * size + cell[1] & 1:
                reached.add(cell)
                front.append(cell)
    return False
