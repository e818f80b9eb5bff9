"""m,n,k-games: k stones of one colour in a line win, on a board of m rows and n columns, with or without gravity.

Tic-tac-toe, Connect Four and free-style gomoku (five or more win) are boards of this family. Row 0 is the top.
"""

import functools
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from alphagat.errors import UserError
from alphagat.games import base, places, svg
from alphagat.games.drawings.discs import disc_places, draw_discs
from alphagat.games.rays import displacements, grid_symmetries, ray_names, ray_relations
from alphagat.games.symmetries import Symmetries
from alphagat.games.transition import win_rewards
from alphagat.graphs.topology import RelationVocabulary, Topology, topology_from_matrix

MIN_SIZE, MAX_SIZE, MIN_RUN, GOMOKU_RUN = 3, 19, 3, 5
SIZE = "[1-9][0-9]{0,5}"  # a pattern
NUM_DISTANCES = 5
HEIGHTS = ("0", "1", "2", "3", "4", "5", "6", "7", "8+")
LINES = ((0, 1), (1, 0), (1, 1), (1, -1))  # (row step, column step)
CELL, COLUMN = 0, 1
VOCABULARY = RelationVocabulary(
    family="mnk",
    version=1,
    relations=(
        "self",
        *ray_names(NUM_DISTANCES),
        *(f"cell>column at height {height}" for height in HEIGHTS),
        "column>cell",
        "column to the left",
        "column to the right",
    ),
    node_kinds=("cell", "column"),
)


class MnkState(base.State):
    """A position.

    Attributes:
      board: `[rows * columns]` int8, 0 empty, 1 a stone of player 0, 2 of player 1.
      num_actions: static. Actions are the cells, or the columns with gravity. A column is open while its top cell is
        empty, so in both cases action `a` is legal while cell `a` is empty.
    """

    board: jax.Array
    num_actions: int = struct.field(pytree_node=False)

    @property
    def legal_action_mask(self) -> jax.Array:
        return (self.board[..., : self.num_actions] == 0) & ~self.terminated[..., None]


class MnkGame(base.Game):
    """The rules, topology and features of one board.

    Features per node: own stone; opponent's stone; empty; playable; height parity from the ground; k / 5; the height
    suits the player to move; empty, and an own stone would complete a line here; empty, and an opponent's stone would.
    Even heights, from 0, suit the first player, and odd heights the second: they get these cells if each answers in the
    column of the last move, as in zugzwang (Allis 1988). Column nodes have only the playable and k / 5 features, and 1
    for the height if the second player moves. Without gravity, both features of the height are 0.
    """

    num_features = 9

    def __init__(self, name: str, rows: int, columns: int, run: int, gravity: bool = False):
        """Makes a board on which `run` stones in a line win. Raises UserError for sizes out of range."""
        for field, size in (("rows", rows), ("columns", columns)):
            if not MIN_SIZE <= size <= MAX_SIZE:
                raise UserError(f"board {name}: {field} {size} is out of range; use {MIN_SIZE} to {MAX_SIZE}")
        if not MIN_RUN <= run <= max(rows, columns):
            raise UserError(f"board {name}: {run} in a line is out of range; use {MIN_RUN} to {max(rows, columns)}")
        self.name, self.rows, self.columns, self.run, self.gravity = name, rows, columns, run, gravity
        self.goal = f"{run} stones in a row win: horizontally, vertically or diagonally."
        if gravity:
            self.goal += " Each stone falls to the lowest free cell of its column."
        self.max_plies = rows * columns
        self.topology = make_topology(rows, columns, run, gravity)
        self.symmetries = make_symmetries(rows, columns, gravity)
        letters = svg.column_letters(columns)
        cells = tuple(f"{letter}{rows - row}" for row in range(rows) for letter in letters)
        self.action_names = tuple(str(column + 1) for column in range(columns)) if gravity else cells

    def init(self, key: jax.Array) -> MnkState:
        del key
        return MnkState(
            current_player=jnp.int8(0),
            rewards=jnp.zeros(2, jnp.float32),
            terminated=jnp.bool_(False),
            board=jnp.zeros(self.rows * self.columns, jnp.int8),
            num_actions=self.num_actions,
        )

    def step(self, state: MnkState, action: jax.Array, key: jax.Array) -> MnkState:
        del key
        running = ~state.terminated
        colour = state.current_player + jnp.int8(1)
        board = jnp.where(self._landing(state.board, action) & running, colour, state.board)
        won = (self._count_in_lines(board == colour) == self.run).any() & running
        return state.replace(
            board=board,
            current_player=jnp.where(running, jnp.int8(1) - state.current_player, state.current_player),
            rewards=win_rewards(state.current_player, won),
            terminated=state.terminated | won | (board != 0).all(),
        )

    def observe(self, state: MnkState) -> jax.Array:
        player = state.current_player
        own, other, empty = (state.board == colour for colour in (player + jnp.int8(1), jnp.int8(2) - player, 0))
        playable = self._playable(state.board) & ~state.terminated
        suits = (self._fixed_features[:, 0] == player) & self.gravity
        completing = self._completing(jnp.stack([own, other])) & empty[None]
        before = jnp.stack([own, other, empty, playable], axis=-1).astype(jnp.float32)
        after = jnp.stack([suits, *completing], axis=-1).astype(jnp.float32)
        cells = jnp.concatenate([before, self._fixed_features, after], axis=-1)
        if not self.gravity:
            return cells
        zeros = jnp.zeros((self.columns, 3), jnp.float32)
        playable = state.legal_action_mask[:, None].astype(jnp.float32)
        k = jnp.full((self.columns, 1), self.run / 5, jnp.float32)
        second = jnp.full((self.columns, 1), player, jnp.float32)
        columns = jnp.concatenate([zeros, playable, zeros[:, :1], k, second, zeros[:, :2]], axis=-1)
        return jnp.concatenate([cells, columns])

    def render(self, state: MnkState) -> str:
        stones = np.asarray(state.board).reshape(self.rows, self.columns)
        names, column_names = self._row_names(), self._column_names()
        width = max(len(name) for name in (*names, *column_names))
        lines = [" ".join((" " * width, *(name.rjust(width) for name in column_names)))]
        for name, row in zip(reversed(names), stones[::-1]):
            lines.insert(0, " ".join((name.rjust(width), *(".xo"[stone].rjust(width) for stone in row))))
        return "\n".join((*lines, self._status(state)))

    def render_svg(self, state: MnkState) -> str:
        stones = np.asarray(state.board).reshape(self.rows, self.columns)
        marked = self._lines(stones)
        if self.gravity:
            return draw_discs(stones - 1, marked, self._column_names())
        return svg.draw_tiles(stones - 1, marked, self._row_names(), self._column_names())

    def node_places(self, state: MnkState) -> np.ndarray:
        if not self.gravity:
            return places.grid_places(self.rows, self.columns)
        cells = disc_places(self.rows, self.columns)
        columns = cells[: self.columns].copy()  # a column's place includes its name below the board
        top, bottom = cells[0, 1] - places.CELL / 2, cells[-1, 1] + places.CELL / 2 + places.MARGIN
        columns[:, 1], columns[:, 3] = (top + bottom) / 2, bottom - top
        return np.concatenate([cells, columns])

    def action_places(self, state: MnkState) -> np.ndarray:
        """Returns the place of the cell where the stone lands; the top cell for a full column."""
        cells = self.node_places(state)[: self.rows * self.columns]
        if not self.gravity:
            return cells
        height = (np.asarray(state.board).reshape(self.rows, self.columns) != 0).sum(axis=0)
        row = np.maximum(self.rows - 1 - height, 0)
        return cells[row * self.columns + np.arange(self.columns)]

    def _row_names(self) -> tuple[str, ...]:
        return tuple("" if self.gravity else str(self.rows - row) for row in range(self.rows))

    def _column_names(self) -> tuple[str, ...]:
        return self.action_names if self.gravity else svg.column_letters(self.columns)

    def _lines(self, stones: np.ndarray) -> np.ndarray:
        """Returns the `[rows, columns]` stones that lie in a line of at least `run`."""
        colours = stones.ravel() == np.array([[1], [2]])
        full = colours @ self._line_cells.T == self.run
        return (full @ self._line_cells > 0).any(axis=0).reshape(stones.shape)

    def _status(self, state: MnkState) -> str:
        if not state.terminated:
            return f"{'xo'[int(state.current_player)]} to move"
        marked = self._lines(np.asarray(state.board).reshape(self.rows, self.columns)).any()
        return f"{'ox'[int(state.current_player)]} won" if marked else "draw"

    @functools.cached_property
    def _fixed_features(self) -> np.ndarray:
        """Returns the constant features `[rows * columns, 2]` float32: height parity and k / 5."""
        heights = self.rows - 1 - np.arange(self.rows * self.columns) // self.columns
        parity = heights % 2 * float(self.gravity)
        return np.stack([parity, np.full_like(parity, self.run / 5)], axis=-1).astype(np.float32)

    def _playable(self, board: jax.Array) -> jax.Array:
        """Returns the `[rows * columns]` cells where a stone can land."""
        if not self.gravity:
            return board == 0
        supported = jnp.concatenate([board[self.columns :] != 0, jnp.ones(self.columns, bool)])
        return (board == 0) & supported

    def _landing(self, board: jax.Array, action: jax.Array) -> jax.Array:
        """Returns the `[rows * columns]` one-hot cell where the stone of `action` lands."""
        cells = np.arange(self.rows * self.columns)
        if not self.gravity:
            return jnp.asarray(cells) == action
        return self._playable(board) & (jnp.asarray(cells % self.columns) == action)

    def _completing(self, stones: jax.Array) -> jax.Array:
        """Returns where one more of the `stones` completes a line, `[..., rows * columns]`; defined in empty cells."""
        lacks_one = self._count_in_lines(stones) == self.run - 1
        return lacks_one.astype(jnp.float32) @ self._line_cells > 0

    def _count_in_lines(self, stones: jax.Array) -> jax.Array:
        """Returns the number of `stones`, `[..., rows * columns]`, in each line of `run` cells: `[..., lines]`."""
        return stones.astype(jnp.float32) @ self._line_cells.T  # exact at any precision: sums of a few ones

    @functools.cached_property
    def _line_cells(self) -> np.ndarray:
        """Returns the cells of each line of `run` cells: `[lines, rows * columns]` float32, 1 or 0."""
        lines = []
        for (row, column), (down, right) in itertools.product(np.ndindex(self.rows, self.columns), LINES):
            rows, columns = row + down * np.arange(self.run), column + right * np.arange(self.run)
            if rows[-1] < self.rows and 0 <= columns[-1] < self.columns:
                lines.append(np.bincount(rows * self.columns + columns, minlength=self.rows * self.columns))
        return np.array(lines, np.float32)


def make_topology(rows: int, columns: int, run: int, gravity: bool) -> Topology:
    """Builds cells (row-major) with line edges up to distance `run - 1` and, with gravity, a node per column."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    down, right = displacements(rows, columns)
    distance = np.maximum(abs(down), abs(right))
    rays = ray_relations(rows, columns, NUM_DISTANCES)
    cells = np.where((rays >= 0) & (distance < run), rays + VOCABULARY.index("n1"), -1)
    np.fill_diagonal(cells, VOCABULARY.index("self"))
    if not gravity:
        kinds = np.full(rows * columns, CELL)
        actions = np.arange(rows * columns)
        return topology_from_matrix(VOCABULARY, cells, kinds, (actions, actions), (rows, columns))
    matrix = np.full((rows * columns + columns,) * 2, -1, np.int32)
    matrix[: rows * columns, : rows * columns] = cells
    _add_column_nodes(matrix, row, column)
    kinds = np.repeat([CELL, COLUMN], [rows * columns, columns])
    actions = rows * columns + np.arange(columns)
    return topology_from_matrix(VOCABULARY, matrix, kinds, (actions, actions), (rows, columns))


def _add_column_nodes(matrix: np.ndarray, row: np.ndarray, column: np.ndarray) -> None:
    """Writes the relations of the column nodes, which follow the cells, into the (receiver, sender) matrix."""
    cells, nodes = np.arange(len(row)), len(row) + column
    height = np.minimum(row.max() - row, len(HEIGHTS) - 1)
    matrix[nodes, cells] = VOCABULARY.index("cell>column at height 0") + height
    matrix[cells, nodes] = VOCABULARY.index("column>cell")
    last = np.arange(len(row), len(matrix))
    matrix[last, last] = VOCABULARY.index("self")
    matrix[last[1:], last[:-1]] = VOCABULARY.index("column to the left")
    matrix[last[:-1], last[1:]] = VOCABULARY.index("column to the right")


def make_symmetries(rows: int, columns: int, gravity: bool) -> Symmetries:
    """Lists the 8 symmetries of a square, the 4 of other rectangles, or the 2 with gravity."""
    cells = grid_symmetries(rows, columns)
    if not gravity:
        return Symmetries(cells, cells)
    line = np.arange(columns, dtype=np.int32)
    actions = np.stack([line, line[::-1]])
    return Symmetries(np.concatenate([cells[:2], rows * columns + actions], axis=1), actions)


def make_tic_tac_toe(name: str) -> MnkGame:
    """Makes `tic_tac_toe`."""
    if name != "tic_tac_toe":
        raise UserError(f"board {name}: it must be tic_tac_toe; for other sizes use mnk:4x4x3")
    return MnkGame(name, 3, 3, 3)


def make_connect_four(name: str) -> MnkGame:
    """Makes `connect_four`, on 6 rows and 7 columns."""
    if name != "connect_four":
        raise UserError(f"board {name}: it must be connect_four; for other sizes use mnk:7x8x4:gravity")
    return MnkGame(name, 6, 7, 4, gravity=True)


def make_gomoku(name: str) -> MnkGame:
    """Makes `gomoku:N`, free style: five or more in a line win."""
    match = re.fullmatch(f"gomoku:({SIZE})", name)
    if not match:
        raise UserError(f"board {name}: it must be gomoku:SIZE, e.g. gomoku:9")
    size = int(match[1])
    if size < GOMOKU_RUN:
        raise UserError(f"board {name}: size {size} is out of range; use {GOMOKU_RUN} to {MAX_SIZE}")
    return MnkGame(name, size, size, GOMOKU_RUN)


def make_mnk(name: str) -> MnkGame:
    """Makes `mnk:ROWSxCOLUMNSxK` or `mnk:ROWSxCOLUMNSxK:gravity`, except boards that have another name."""
    match = re.fullmatch(f"mnk:({SIZE})x({SIZE})x({SIZE})(:gravity)?", name)
    if not match:
        raise UserError(
            f"board {name}: it must be mnk:ROWSxCOLUMNSxK or mnk:ROWSxCOLUMNSxK:gravity, e.g. mnk:5x6x4:gravity"
        )
    rows, columns, run = (int(number) for number in match.groups()[:3])
    if known := _known_name(rows, columns, run, gravity=match[4] is not None):
        raise UserError(f"board {name}: this board is called {known}")
    return MnkGame(name, rows, columns, run, gravity=match[4] is not None)


def _known_name(rows: int, columns: int, run: int, gravity: bool) -> str | None:
    """Returns the name of a board that is no `mnk:` board."""
    if rows == columns and run == GOMOKU_RUN and not gravity:
        return f"gomoku:{rows}"
    return {(3, 3, 3, False): "tic_tac_toe", (6, 7, 4, True): "connect_four"}.get((rows, columns, run, gravity))
