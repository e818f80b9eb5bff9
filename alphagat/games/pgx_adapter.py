"""Two-player games of perfect information from Pgx, as `pgx:NAME`, with its rules and its observations.

It serves games without a native module; `go:N`, `chess` and `hex:N` are faster than their Pgx counterparts and share
weights between board sizes. Player 0 always moves first, whereas Pgx draws the first player at random.

The graph follows from array shapes: cells of the observation are nodes, channels are their features, and cells on a
queen's line have an edge by direction and distance. `PLACES` maps the number of an action to its cell; an action
without a cell is a separate node with edges to and from all cells.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.errors import UserError
from alphagat.games import base, svg
from alphagat.games.rays import ray_names, ray_relations
from alphagat.games.symmetries import Symmetries
from alphagat.graphs.topology import RelationVocabulary, Topology, topology_from_matrix

NUM_DISTANCES = 4
# The fields that states of all games have in Pgx. They are constant or stored elsewhere.
COMMON_FIELDS = ("observation", "current_player", "rewards", "terminated", "truncated", "legal_action_mask")


class Board(NamedTuple):
    """The shape of a game."""

    rows: int
    columns: int
    num_actions: int


class Places(NamedTuple):
    """The locations of actions; `[A]` each.

    Attributes:
      cells: the cell, in row-major order, or -1 for an action without a cell.
      kinds: distinguishes the actions of one cell.
    """

    cells: np.ndarray
    kinds: np.ndarray


def by_cell(board: Board) -> Places:
    """Actions are the cells, row by row; actions after them, such as a pass, have no cell."""
    numbers = np.arange(board.num_actions)
    return Places(np.where(numbers < board.rows * board.columns, numbers, -1), np.zeros_like(numbers))


def by_itself(board: Board) -> Places:
    """No action has a cell."""
    return Places(np.full(board.num_actions, -1), np.zeros(board.num_actions, int))


def by_kind_then_square(board: Board) -> Places:
    """All squares for the first kind of action, and so on; squares go down the columns from the right, as in shogi."""
    kinds, squares = np.divmod(np.arange(board.num_actions), board.rows * board.columns)
    columns, rows = np.divmod(squares, board.rows)
    return Places(rows * board.columns + board.columns - 1 - columns, kinds)


def by_square_then_kind(board: Board) -> Places:
    """All kinds of action for the first square, and so on; squares go up the columns from the left, as in chess."""
    squares, kinds = np.divmod(np.arange(board.num_actions), board.num_actions // (board.rows * board.columns))
    columns, rows = np.divmod(squares, board.rows)
    return Places((board.rows - 1 - rows) * board.columns + columns, kinds)


# deterministic games of perfect information in Pgx 2.6.0 -> location of actions, and maximum number of plies
GAMES: dict[str, tuple[Callable[[Board], Places], int]] = {
    "animal_shogi": (by_kind_then_square, 256),
    "chess": (by_square_then_kind, 512),
    "connect_four": (by_itself, 42),
    "gardner_chess": (by_square_then_kind, 256),
    "go_19x19": (by_cell, 722),
    "go_9x9": (by_cell, 162),
    "hex": (by_cell, 122),
    "othello": (by_cell, 122),
    "shogi": (by_kind_then_square, 512),
    "tic_tac_toe": (by_cell, 9),
}


class PgxState(base.State):
    """A position.

    Attributes:
      rules: Pgx's state, without its `COMMON_FIELDS` and the order of the players.
      legal: `[A]` bool.
    """

    rules: Any
    legal: jax.Array

    @property
    def legal_action_mask(self) -> jax.Array:
        return self.legal


class PgxGame(base.Game):
    """One of Pgx's games.

    Features per node: the channels of Pgx's observation, from the perspective of the player to move; zeros for action
    nodes.
    """

    player_colours = (("player 1", "#495057"), ("player 2", "#adb5bd"))

    def __init__(self, game: str):
        """Makes the game of that name. Raises UserError for others."""
        if game not in GAMES:
            raise UserError(
                f"board pgx:{game}: there is no such two-player game of perfect information; use {', '.join(GAMES)}"
            )
        import pgx  # here, because it computes on a device when it is imported

        self.name = f"pgx:{game}"
        self._env = pgx.make(game)  # pyright: ignore[reportArgumentType]
        first = jax.eval_shape(self._make_first, jax.random.key(0))
        rows, columns, self.num_features = first.observation.shape
        self.board = Board(rows, columns, len(first.legal_action_mask))
        place, self.max_plies = GAMES[game]
        self.topology = make_topology(self.name, self.board, place(self.board))
        self.symmetries = Symmetries(
            np.arange(self.topology.num_nodes, dtype=np.int32)[None], np.arange(self.num_actions, dtype=np.int32)[None]
        )
        self.action_names = _action_names(self.board, place(self.board))

    def init(self, key: jax.Array) -> PgxState:
        return self._slim(self._make_first(key))

    def step(self, state: PgxState, action: jax.Array, key: jax.Array) -> PgxState:
        with jax.numpy_rank_promotion("allow"):
            after = self._slim(self._env.step(self._full(state), action, key))
        # Strips weak types, so that all states have the same dtypes.
        return jax.tree.map(lambda new, old: jax.lax.convert_element_type(new, old.dtype), after, state)

    def pgx_observation(self, state: PgxState) -> jax.Array:
        """Returns Pgx's observation `[rows, columns, channels]`, the input of its own networks."""
        with jax.numpy_rank_promotion("allow"):
            return self._full(state).observation

    def observe(self, state: PgxState) -> jax.Array:
        cells = self.pgx_observation(state).reshape(-1, self.num_features).astype(jnp.float32)
        return jnp.pad(cells, ((0, self.topology.num_nodes - len(cells)), (0, 0)))

    def render(self, state: PgxState) -> str:
        """Shows for each cell the first channel that is positive there; skips channels that are equal on all cells."""
        rows, columns, _ = self.board
        nodes = np.asarray(self.observe(state))[: rows * columns]
        nodes = np.where((nodes == nodes[:1]).all(axis=0), 0, nodes) > 0
        shown = np.where(nodes.any(axis=-1), nodes.argmax(axis=-1).astype(str), ".").reshape(rows, columns)
        width = max(len(text) for text in shown.ravel())
        lines = [f"{rows - row:2} {' '.join(text.rjust(width) for text in line)}" for row, line in enumerate(shown)]
        names = " ".join(letter.rjust(width) for letter in svg.column_letters(columns))
        return "\n".join((*lines, f"   {names}", self._status(state)))

    def render_svg(self, state: PgxState) -> str:
        """Returns Pgx's own drawing."""
        with jax.numpy_rank_promotion("allow"):
            drawing = self._full(state).to_svg(color_theme="light")
        width, height = (float(re.search(f'{side}="([0-9.]+)"', drawing)[1]) for side in ("width", "height"))  # pyright: ignore
        return drawing.replace("<svg ", f'<svg viewBox="0 0 {width:g} {height:g}" ', 1)

    def _status(self, state: PgxState) -> str:
        ply = f"ply {int(state.rules._step_count)}"
        names, rewards = [name for name, _ in self.player_colours], np.asarray(state.rewards)
        if not state.terminated:
            return f"{ply}: {names[int(state.current_player)]} to move"
        return f"{ply}: {names[rewards.argmax()]} won" if rewards.any() else f"{ply}: game over"

    def _make_first(self, key: jax.Array) -> Any:
        """Returns Pgx's first state, with player 0 to move."""
        with jax.numpy_rank_promotion("allow"):
            return self._full(self._slim(self._env.init(key)).replace(current_player=jnp.int8(0)))

    def _slim(self, full: Any) -> PgxState:
        absent = dict.fromkeys((*COMMON_FIELDS, *_order_field(full)))
        return PgxState(
            current_player=full.current_player.astype(jnp.int8),
            rewards=full.rewards,
            terminated=full.terminated,
            rules=full.replace(**absent),
            legal=full.legal_action_mask & ~full.terminated,
        )

    def _full(self, state: PgxState) -> Any:
        order = dict.fromkeys(_order_field(state.rules), jnp.arange(2, dtype=jnp.int32))
        full = state.rules.replace(
            current_player=state.current_player.astype(jnp.int32),
            rewards=state.rewards,
            terminated=state.terminated,
            truncated=jnp.bool_(False),
            legal_action_mask=state.legal | state.terminated,  # Pgx would penalise any illegal action
            **order,
        )
        return full.replace(observation=self._env.observe(full))


def _order_field(state: Any) -> tuple[str, ...]:
    """Returns the name of the field for the order of the players; empty for games without it."""
    return ("_player_order",) if hasattr(state, "_player_order") else ()


def _action_names(board: Board, places: Places) -> tuple[str, ...]:
    letters = svg.column_letters(board.columns)
    names, several = [], len(set(places.kinds.tolist())) > 1
    for action, (cell, kind) in enumerate(zip(*places)):
        row, column = divmod(int(cell), board.columns)
        at = f"{letters[column]}{board.rows - row}"
        names.append(f"action {action}" if cell < 0 else f"{at} {kind}" if several else at)
    return tuple(names)


def make_topology(family: str, board: Board, places: Places) -> Topology:
    """Builds the cells (row-major), and a node for each action without a cell."""
    num_cells, free = board.rows * board.columns, np.flatnonzero(places.cells < 0)
    num_kinds = int(places.kinds.max()) + 1
    vocabulary = RelationVocabulary(
        family=family,
        version=1,
        relations=("self", *ray_names(NUM_DISTANCES), "cell>action", "action>cell"),
        node_kinds=("cell", *(f"action {action}" for action in free)),
        action_kinds=tuple(f"kind {kind}" for kind in range(num_kinds)),
    )
    matrix = np.full((num_cells + len(free),) * 2, -1, np.int32)
    lines = ray_relations(board.rows, board.columns, NUM_DISTANCES)
    matrix[:num_cells, :num_cells] = np.where(lines >= 0, lines + 1, -1)
    matrix[num_cells:, :num_cells] = vocabulary.index("cell>action")
    matrix[:num_cells, num_cells:] = vocabulary.index("action>cell")
    np.fill_diagonal(matrix, 0)
    kinds = np.concatenate([np.zeros(num_cells), 1 + np.arange(len(free))])
    nodes = places.cells.copy()
    nodes[free] = num_cells + np.arange(len(free))
    return topology_from_matrix(vocabulary, matrix, kinds, (nodes, nodes), (board.rows, board.columns), places.kinds)


def make_pgx(name: str) -> PgxGame:
    """Makes `pgx:NAME`."""
    _, *names = name.split(":")
    if len(names) != 1:
        raise UserError(f"board {name}: it must be pgx:NAME, e.g. pgx:animal_shogi")
    return PgxGame(names[0])
