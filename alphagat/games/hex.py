"""Hex: two players connect opposite borders of a rhombus of hexagons; there are no draws.

Player 0 connects top to bottom, player 1 left to right. Cell (r, c) touches (r, c±1), (r±1, c), (r-1, c+1) and
(r+1, c-1). With the swap rule (pie rule), the second player may reply to the first stone by taking it over,
mirrored in the long diagonal.
"""

import collections
import re
from string import ascii_lowercase

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.errors import UserError
from alphagat.games import base, hex_distances, places, svg
from alphagat.games.drawings.hexagons import draw_hexagons, hexagon_places
from alphagat.games.rays import displacements, neighbour_table
from alphagat.games.symmetries import Symmetries
from alphagat.games.transition import win_rewards
from alphagat.graphs.topology import RelationVocabulary, Topology, topology_from_matrix

MIN_SIZE, MAX_SIZE = 2, 19
NEIGHBOURS = ((0, -1), (0, 1), (-1, 0), (1, 0), (-1, 1), (1, -1))
CELL, BORDER, SWAP = 0, 1, 2
TOP, BOTTOM, LEFT, RIGHT = 0, 1, 2, 3
SWAPS = ("swap-pieces", "swap")  # what other programs call a swap
VOCABULARY = RelationVocabulary(
    family="hex",
    version=1,
    relations=(
        "self",
        *(f"cell at ({down:+d},{right:+d})" for down, right in NEIGHBOURS),
        "cell>border",
        "border>cell",
        "border opposite",
        "border adjacent",
        "swap>cell",
        "cell>swap",
    ),
    node_kinds=("cell", "border", "swap"),
)


class HexState(base.State):
    """A position.

    Attributes:
      cells: `[N * N]` int16, 0 if empty, else the label of the stone's group, positive for player 0 and negative for
        player 1. Its absolute value is N * N + 1 for groups connected to their player's first border (top, left),
        N * N + 2 for the second (bottom, right), else the index of one of the group's cells plus 1.
      can_swap: `[]` bool, whether the player to move may take over the only stone; None without the swap rule.
    """

    cells: jax.Array
    can_swap: jax.Array | None

    @property
    def legal_action_mask(self) -> jax.Array:
        legal = (self.cells == 0) & ~self.terminated[..., None]
        return legal if self.can_swap is None else jnp.concatenate([legal, self.can_swap[..., None]], axis=-1)


class HexGame(base.Game):
    """The rules, topology and features of one board.

    Features per node: own (stone or border); opponent's; empty; stone connected to one of its player's borders; swap is
    legal (swap node only); 2^-n if a chain of the player to move through this cell needs n stones more than their
    shortest one (0 for other nodes); the same for the opponent; stones in the shortest chain of the player to move / 8;
    of the opponent / 8. Shortest chains assume that bridges hold (`hex_distances`).
    """

    num_features = 9

    def __init__(self, size: int, swap: bool = False):
        """Makes a board of `size` x `size` cells. Raises UserError for sizes out of range."""
        self.name = f"hex:{size}:swap" if swap else f"hex:{size}"
        if not MIN_SIZE <= size <= MAX_SIZE:
            raise UserError(f"board {self.name}: size {size} is out of range; use {MIN_SIZE} to {MAX_SIZE}")
        self.size, self.swap = size, swap
        self.goal = "Orange connects top and bottom, Blue left and right. The first unbroken chain of stones wins."
        if swap:
            self.goal += " As its first move, Blue may take over Orange's stone instead."
        self.max_plies = size * size + swap
        self.topology = make_topology(size, swap)
        self.symmetries = make_symmetries(size, swap)
        cells = tuple(f"{letter}{row + 1}" for row in range(size) for letter in svg.column_letters(size))
        self.action_names = (*cells, "swap") if swap else cells
        self._neighbours = neighbour_table(size, NEIGHBOURS, outside=np.arange(size * size)[:, None])

    def init(self, key: jax.Array) -> HexState:
        del key
        return HexState(
            current_player=jnp.int8(0),
            rewards=jnp.zeros(2, jnp.float32),
            terminated=jnp.bool_(False),
            cells=jnp.zeros(self.size * self.size, jnp.int16),
            can_swap=jnp.bool_(False) if self.swap else None,
        )

    def step(self, state: HexState, action: jax.Array, key: jax.Array) -> HexState:
        del key
        running = ~state.terminated
        colour = jnp.int16(1) - jnp.int16(2) * state.current_player  # 1 or -1
        own, won = self._place(state.cells * colour, state.current_player, action)
        cells = own * colour
        can_swap = state.can_swap
        if can_swap is not None:
            swapped = action == self.size * self.size
            cells = jnp.where(swapped, self._take_over(state.cells), cells)
            won &= ~swapped
            can_swap = (state.cells == 0).all()
        won &= running
        return state.replace(
            cells=jnp.where(running, cells, state.cells),
            can_swap=can_swap,
            current_player=jnp.where(running, jnp.int8(1) - state.current_player, state.current_player),
            rewards=win_rewards(state.current_player, won),
            terminated=state.terminated | won,
        )

    def observe(self, state: HexState) -> jax.Array:
        num_cells = self.size * self.size
        own = state.cells * (jnp.int16(1) - jnp.int16(2) * state.current_player)
        connected = abs(own) > num_cells
        none = jnp.zeros_like(connected)
        cells = jnp.stack([own > 0, own < 0, own == 0, connected, none], axis=-1).astype(jnp.float32)
        owner = np.array([0, 0, 1, 1])  # of top, bottom, left, right
        mine = jnp.asarray(owner) == state.current_player
        none = jnp.zeros(4, bool)
        nodes = [cells, jnp.stack([mine, ~mine, none, none, none], axis=-1).astype(jnp.float32)]
        if state.can_swap is not None:
            is_swap = jnp.asarray(np.eye(1, 5, 4, dtype=np.float32))
            nodes.append(is_swap * state.can_swap.astype(jnp.float32))
        return jnp.concatenate([jnp.concatenate(nodes), self._chain_features(state)], axis=-1)

    def render(self, state: HexState) -> str:
        stones = np.sign(np.asarray(state.cells)).reshape(self.size, self.size)
        lines = ["   " + " ".join(svg.column_letters(self.size))]
        lines += [
            f"{' ' * row}{row + 1:2} {' '.join('.xo'[stone] for stone in line)}" for row, line in enumerate(stones)
        ]
        return "\n".join((*lines, self._status(state)))

    def render_svg(self, state: HexState) -> str:
        players = np.array([-1, 0, 1])[np.sign(np.asarray(state.cells))].reshape(self.size, self.size)
        names = tuple(str(row + 1) for row in range(self.size))
        chain = winning_chain(players) if state.terminated else np.zeros(players.shape, bool)
        return draw_hexagons(players, chain, names, svg.column_letters(self.size))

    def node_places(self, state: HexState) -> np.ndarray:
        return np.concatenate([hexagon_places(self.size), places.nowhere(int(self.swap))])

    def _status(self, state: HexState) -> str:
        if state.terminated:
            return f"{'ox'[int(state.current_player)]} won"
        goal = ("x to move, top to bottom", "o to move, left to right")[int(state.current_player)]
        return f"{goal}, or swap" if state.can_swap is not None and state.can_swap else goal

    def _chain_features(self, state: HexState) -> jax.Array:
        """Returns the last four features of all nodes, `[V, 4]`."""
        stones = jnp.sign(state.cells).reshape(self.size, self.size)
        needed = hex_distances.stones_needed(stones).reshape(2, -1)
        needed = jnp.where(state.current_player == 0, needed, needed[::-1]).T  # own, opponent's
        shortest = needed.min(axis=0, keepdims=True)
        through = jnp.where(needed < self.size, jnp.exp2((shortest - needed).astype(jnp.float32)), 0.0)
        num_nodes = self.topology.num_nodes
        through = jnp.pad(through, ((0, num_nodes - len(through)), (0, 0)))
        return jnp.concatenate([through, jnp.broadcast_to(shortest / jnp.float32(8), (num_nodes, 2))], axis=-1)

    def _place(self, own: jax.Array, player: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Places a stone of the player with positive labels; returns the labels, and whether the borders connect."""
        num_cells = self.size * self.size
        start, end = jnp.int16(num_cells + 1), jnp.int16(num_cells + 2)
        cell = jnp.arange(num_cells) == action
        row, column = action // self.size, action % self.size
        along = jnp.where(player == 0, row, column)
        around = jnp.asarray(self._neighbours)[action]  # [6], the cell itself if the neighbour is off the board
        labels = jnp.maximum(own[around], jnp.int16(0))  # [6], 0 unless an own stone
        at_start = (along == 0) | (labels == start).any()
        at_end = (along == self.size - 1) | (labels == end).any()
        label = jnp.maximum(labels.max(), (action + 1).astype(jnp.int16))
        label = jnp.where(at_end, end, jnp.where(at_start, start, label))
        touched = cell
        for neighbour in range(len(NEIGHBOURS)):
            touched |= (own == labels[neighbour]) & (own > 0)
        return jnp.where(touched, label, own), at_start & at_end

    def _take_over(self, cells: jax.Array) -> jax.Array:
        """Replaces the only stone by a stone of the other player on the mirrored cell."""
        num_cells = self.size * self.size
        mirrored = cells.reshape(self.size, self.size).T.ravel()
        # Reflection maps one player's first border to the other's, so border labels keep their absolute value.
        indices = jnp.arange(1, num_cells + 1, dtype=jnp.int16)
        return -jnp.sign(mirrored) * jnp.where(abs(mirrored) > num_cells, abs(mirrored), indices)


def mirrored(cell: str) -> str:
    """Returns the mirror image of a cell in the long diagonal, e.g. `c2` for `b3`."""
    return f"{ascii_lowercase[int(cell[1:]) - 1]}{ascii_lowercase.index(cell[0]) + 1}"


def winning_chain(players: np.ndarray) -> np.ndarray:
    """Returns the `[N, N]` stones of a shortest chain between two opposite borders; none if no player connects them.

    Args:
      players: `[N, N]`, the player whose stone it is, or -1.
    """
    size, chain = len(players), np.zeros(players.shape, bool)
    for player in range(2):
        own = players == player if player == 0 else (players == player).T
        steps = {(0, column): (-1, -1) for column in range(size) if own[0, column]}  # to each cell, from the one before
        queue = collections.deque(steps)
        while queue:
            cell = queue.popleft()
            if cell[0] == size - 1:
                while cell in steps:
                    chain[cell if player == 0 else cell[::-1]] = True
                    cell = steps[cell]
                return chain
            for row_step, column_step in NEIGHBOURS:
                after = cell[0] + row_step, cell[1] + column_step
                if min(after) >= 0 and max(after) < size and own[after] and after not in steps:
                    steps[after] = cell
                    queue.append(after)
    return chain


def make_topology(size: int, swap: bool) -> Topology:
    """Builds cells (row-major), the borders top, bottom, left and right, and, with the swap rule, a swap node.

    Cells have edges to themselves, to adjacent cells and borders, and to the swap node. Edges to farther cells
    (measured: all cells within 3 steps and all borders) made the network learn several times slower, because attention
    then starts as an average over most of the board.
    """
    num_cells = size * size
    row, column = np.divmod(np.arange(num_cells), size)
    matrix = np.full((num_cells + 4 + swap,) * 2, -1, np.int32)
    np.fill_diagonal(matrix, VOCABULARY.index("self"))
    down, right = displacements(size, size)
    for number, displacement in enumerate(NEIGHBOURS):
        receivers, senders = np.nonzero((down == displacement[0]) & (right == displacement[1]))
        matrix[receivers, senders] = 1 + number
    last = size - 1
    for border, distance in ((TOP, row), (BOTTOM, last - row), (LEFT, column), (RIGHT, last - column)):
        adjacent = np.flatnonzero(distance == 0)
        matrix[num_cells + border, adjacent] = VOCABULARY.index("cell>border")
        matrix[adjacent, num_cells + border] = VOCABULARY.index("border>cell")
        for other in (TOP, BOTTOM, LEFT, RIGHT):
            if other != border:
                kind = "border opposite" if other // 2 == border // 2 else "border adjacent"
                matrix[num_cells + border, num_cells + other] = VOCABULARY.index(kind)
    if swap:
        matrix[-1, :num_cells] = VOCABULARY.index("cell>swap")
        matrix[:num_cells, -1] = VOCABULARY.index("swap>cell")
    kinds = np.repeat([CELL, BORDER, SWAP], [num_cells, 4, int(swap)])
    actions = np.concatenate([np.arange(num_cells), np.arange(num_cells + 4, len(matrix))])
    return topology_from_matrix(VOCABULARY, matrix, kinds, (actions, actions), (size, size))


def make_symmetries(size: int, swap: bool) -> Symmetries:
    """Lists the identity, the half turn, and the reflections in both diagonals, which exchange the players."""
    grid = np.arange(size * size).reshape(size, size)
    turned = (
        (grid, (TOP, BOTTOM, LEFT, RIGHT)),
        (grid[::-1, ::-1], (BOTTOM, TOP, RIGHT, LEFT)),
        (grid.T, (LEFT, RIGHT, TOP, BOTTOM)),
        (grid[::-1, ::-1].T, (RIGHT, LEFT, BOTTOM, TOP)),
    )
    cells = np.stack([turn.ravel() for turn, _ in turned]).astype(np.int32)
    borders = np.array([border for _, border in turned], np.int32) + size * size
    rest = np.full((len(turned), int(swap)), size * size, np.int32)
    nodes = np.concatenate([cells, borders, rest + 4], axis=1)
    return Symmetries(nodes, np.concatenate([cells, rest], axis=1))


def make_hex(name: str) -> HexGame:
    """Makes `hex:N` or `hex:N:swap`."""
    match = re.fullmatch("hex:([1-9][0-9]{0,5})(:swap)?", name)
    if not match:
        raise UserError(f"board {name}: it must be hex:SIZE or hex:SIZE:swap, e.g. hex:5")
    return HexGame(int(match[1]), swap=match[2] is not None)
