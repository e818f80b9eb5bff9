"""2048: tiles slide in one direction, equal tiles merge and pay their sum, and a new tile appears.

A single-player game on N x N cells, row 0 at the top. After every move chance puts a 2 (probability 0.9) or a 4 (0.1)
on a uniformly random empty cell. The game is over when no direction changes the board; there is no goal tile. A tile
merges at most once per move, starting at the wall: 2 2 2 to the left gives 4 2.
"""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.errors import UserError
from alphagat.games import base
from alphagat.games.drawings.numbers import draw_powers_of_two, tile_places
from alphagat.games.rays import displacements, grid_symmetries
from alphagat.games.symmetries import Symmetries
from alphagat.graphs.topology import RelationVocabulary, Topology, topology_from_matrix

MIN_SIZE, USUAL_SIZE, MAX_SIZE = 2, 4, 8
DIRECTIONS = ("left", "up", "right", "down")
LEFT, UP, RIGHT, DOWN = range(4)
TILE_PROBABILITIES = (0.9, 0.1)  # of a new 2, a new 4
DISTANCES = ("1", "2", "3", "4", "5+")
DEPTHS = ("0", "1", "2", "3", "4+")
CELL, DIRECTION = 0, 1
VOCABULARY = RelationVocabulary(
    family="2048",
    version=1,
    relations=(
        "self",
        *(f"cell {direction} {distance}" for direction in DIRECTIONS for distance in DISTANCES),
        *(f"cell>{direction} at depth {depth}" for direction in DIRECTIONS for depth in DEPTHS),
        *(f"{direction}>cell" for direction in DIRECTIONS),
    ),
    node_kinds=("cell", "direction"),
)
LARGEST_EXPONENT = 17  # the last with a separate feature: no tile on 4 x 4 is larger
SCALED, LEGAL = LARGEST_EXPONENT + 1, LARGEST_EXPONENT + 2  # indices of features
NUM_ATOMS, LARGEST_RETURN = 256, 2.0**20


def support_of_returns(num_atoms: int, largest: float) -> tuple[float, ...]:
    """Returns atoms from 0 to `largest`, evenly spaced under h(x) = sqrt(x + 1) - 1 + 0.001 x (Pohlen et al. 2018)."""
    slope = 0.001
    transformed = np.linspace(0.0, math.sqrt(largest + 1) - 1 + slope * largest, num_atoms)
    root = (np.sqrt(1 + 4 * slope * (transformed + 1 + slope)) - 1) / (2 * slope)  # sqrt(x + 1)
    return tuple((root**2 - 1).round(3).tolist())


class TwentyFortyEightState(base.State):
    """A position, or an afterstate.

    Attributes:
      board: `[N * N]` int8, 0 empty, else the exponent of the tile: k for 2^k.
    """

    board: jax.Array

    @property
    def legal_action_mask(self) -> jax.Array:
        board, size = self.board, math.isqrt(self.board.shape[-1])
        row, column = np.divmod(np.arange(size * size).reshape(*[1] * (board.ndim - 1), -1), size)
        bits = jnp.zeros_like(board)  # per pair of neighbours: bit a is set if action a moves one of them
        for back, far, inside in ((LEFT, 1, column < size - 1), (UP, size, row < size - 1)):
            neighbour = jnp.roll(board, -far, axis=-1)
            equal = board == neighbour
            goes_back = (neighbour != 0) & ((board == 0) | equal) & inside
            goes_forth = (board != 0) & ((neighbour == 0) | equal) & inside
            bits |= goes_back.astype(jnp.int8) << back | goes_forth.astype(jnp.int8) << (back + 2)
        either = jnp.bitwise_or.reduce(bits, axis=-1, keepdims=True)
        powers = np.array([1 << action for action in range(len(DIRECTIONS))], np.int8)
        return (either & powers.reshape(*[1] * (board.ndim - 1), -1) != 0) & ~self.terminated[..., None]


class TwentyFortyEightGame(base.StochasticGame):
    """The rules, topology and features of one board.

    Outcomes of chance: 2 c puts a 2 on cell c, 2 c + 1 puts a 4 there.

    Features per node: empty; one for each exponent up to 17 (larger exponents count as 17); exponent / 17; direction is
    legal (direction nodes only).

    No game lasts longer than 2^(M + 1) - 4 moves on M = N * N cells. Proof by induction over M, where the age of a tile
    is that of the oldest new tile in it, and the merges of one move happen one after the other:

    - No exponent exceeds M + 1. For M = 1, only a new tile fits, whose exponent is at most 2. A larger tile k is the
      sum of two tiles k - 1. While the younger of these grew, the older one occupied a cell. The younger one thus grew
      on M - 1 cells, so k - 1 <= M.
    - The sum of all tiles is at most 2^(M + 2) - 4: at most 2^(M + 1) for the oldest tile, and at most 2^(M + 1) - 4
      for the others, which grew on M - 1 cells.
    - The sum is at least 4 at the start, and the new tile after every move adds at least 2.

    From N = 6 on, this exceeds 32-bit counters; `max_plies` is then 2^31 - 1, which no game reaches in practice.

    `value_support` ends at 2^20 = 1,048,576 points. A tile of 65,536 is worth 983,040 if all new tiles are 2; the
    best program known averages 625,377 on 4 x 4 and rarely reaches that tile (Guei et al. 2021). Returns above 2^20 are
    clipped. On larger boards this affects many games, because scores are higher: even random play averages 7,600 points
    on 5 x 5 and 100,000 on 6 x 6.
    """

    num_players = 1
    goal = "All tiles slide. Equal tiles that meet merge and score. The game ends when no move is left."
    num_features = LARGEST_EXPONENT + 3
    value_support = support_of_returns(NUM_ATOMS, LARGEST_RETURN)
    action_names = DIRECTIONS
    achievement_name = "largest tile"

    def __init__(self, size: int = USUAL_SIZE):
        """Makes a board of `size` x `size` cells. Raises UserError for sizes out of range."""
        self.name = "2048" if size == USUAL_SIZE else f"2048:{size}"
        if not MIN_SIZE <= size <= MAX_SIZE:
            raise UserError(f"board {self.name}: size {size} is out of range; use {MIN_SIZE} to {MAX_SIZE}")
        self.size = size
        self.num_chance_outcomes = 2 * size * size
        self.max_plies = min(2 ** (size * size + 1) - 4, 2**31 - 1)
        self.topology = make_topology(size)
        self.symmetries = make_symmetries(size)

    def init(self, key: jax.Array) -> TwentyFortyEightState:
        state = TwentyFortyEightState(
            current_player=jnp.int8(0),
            rewards=jnp.zeros(1, jnp.float32),
            terminated=jnp.bool_(False),
            board=jnp.zeros(self.size * self.size, jnp.int8),
        )
        for tile_key in jax.random.split(key):
            state = self.resolve(state, self.draw(state, tile_key))
        return state

    def move(self, state: TwentyFortyEightState, action: jax.Array) -> TwentyFortyEightState:
        vertical, backwards = (action == UP) | (action == DOWN), action >= RIGHT
        board = state.board.reshape(self.size, self.size)
        lines = jnp.where(vertical, board.T, board)
        lines, score = slide(jnp.where(backwards, lines[:, ::-1], lines))
        lines = jnp.where(backwards, lines[:, ::-1], lines)
        board = jnp.where(vertical, lines.T, lines)
        return state.replace(board=board.ravel(), rewards=score[None])

    def achievement(self, state: TwentyFortyEightState) -> jax.Array:
        return jnp.int32(1) << state.board.max().astype(jnp.int32)

    def chance_log_probs(self, afterstate: TwentyFortyEightState) -> jax.Array:
        empty = afterstate.board == 0
        num_empty = jnp.maximum(empty.sum(), 1).astype(jnp.float32)
        log_probs = jnp.log(jnp.asarray(TILE_PROBABILITIES, jnp.float32)) - jnp.log(num_empty)
        return jnp.where(empty[:, None], log_probs[None], -jnp.inf).ravel()

    def resolve(self, afterstate: TwentyFortyEightState, outcome: jax.Array) -> TwentyFortyEightState:
        cells = jnp.arange(self.size * self.size)
        board = jnp.where(cells == outcome >> 1, (1 + (outcome & 1)).astype(jnp.int8), afterstate.board)
        # Cells beyond the border count as empty. They equal only empty cells, which already permit a move.
        below = jnp.pad(board[self.size :], (0, self.size))
        right = jnp.pad(board.reshape(self.size, self.size)[:, 1:], ((0, 0), (0, 1))).ravel()
        goes_on = (board == 0) | (board == below) | (board == right)
        return afterstate.replace(board=board, terminated=~goes_on.any())

    def observe(self, state: TwentyFortyEightState) -> jax.Array:
        # Constants and sums instead of selects, so that a loop around this compiles to vector instructions.
        features = np.arange(self.num_features, dtype=np.int8)[None]
        is_scaled, is_legal = ((features == number).astype(np.float32) for number in (SCALED, LEGAL))
        exponents = state.board[:, None]
        cells = (jnp.minimum(exponents, LARGEST_EXPONENT) == features).astype(jnp.float32)
        cells += exponents / jnp.float32(LARGEST_EXPONENT) * is_scaled
        directions = state.legal_action_mask[:, None] * is_legal
        return jnp.concatenate([cells, directions])

    def render(self, state: TwentyFortyEightState) -> str:
        tiles = [str(2**exponent) if exponent else "." for exponent in np.asarray(state.board).tolist()]
        width = max(len(tile) for tile in tiles)
        lines = [
            " ".join(tile.rjust(width) for tile in tiles[start : start + self.size])
            for start in range(0, len(tiles), self.size)
        ]
        legal = [name for name, is_legal in zip(DIRECTIONS, np.asarray(state.legal_action_mask)) if is_legal]
        return "\n".join((*lines, "over" if state.terminated else f"to move: {', '.join(legal)}"))

    def render_svg(self, state: TwentyFortyEightState) -> str:
        return draw_powers_of_two(np.asarray(state.board).reshape(self.size, self.size))

    def node_places(self, state: TwentyFortyEightState) -> np.ndarray:
        return tile_places(self.size)

    def draw(self, afterstate: TwentyFortyEightState, key: jax.Array) -> jax.Array:
        """Draws a chance outcome: the integer part of a 23-bit random number gives the cell, the fraction the tile."""
        empty = (afterstate.board == 0).astype(jnp.float32)
        rank = jnp.asarray(np.tri(self.size * self.size, dtype=np.float32)) @ empty  # ranks of empty cells, from 1
        number = jax.random.uniform(key) * rank[-1]
        cell = (rank <= jnp.floor(number)).sum()
        return 2 * cell + (number - jnp.floor(number) >= TILE_PROBABILITIES[0])


def slide(lines: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Slides every line of `[L, N]` int8 exponents towards index 0; returns the lines, and the sum of the merged tiles.

    The first pass determines the merges and the destination of each tile; the second adds up the tiles per cell.
    """
    size = lines.shape[1]
    waiting = jnp.zeros_like(lines[:, 0])  # the previous tile if it may still merge, else 0
    place = jnp.full_like(waiting, -1)  # destination of the previous tile
    merged, places, parts = [], [], []
    for tile in [lines[:, index] for index in range(size)]:
        merges = (tile == waiting) & (tile != 0)
        place = place + ((tile != 0) & ~merges).astype(jnp.int8)
        waiting = jnp.where(merges, jnp.int8(0), jnp.where(tile != 0, tile, waiting))
        merged.append(merges)
        places.append(place)
        parts.append(jnp.where(merges, jnp.int8(1), tile))  # merging adds 1 to the exponent of the previous tile
    slid = [
        sum(jnp.where(places[index] == target, parts[index], jnp.int8(0)) for index in range(target, size))
        for target in range(size)
    ]
    score = jnp.where(jnp.stack(merged, axis=1), power_of_two(lines + jnp.int8(1)), jnp.float32(0)).sum()
    return jnp.stack(slid, axis=1), score


def power_of_two(exponents: jax.Array) -> jax.Array:
    """Returns 2^k exactly, as float32, for integers k from 0 to 127, by writing the bits of the exponent."""
    return jax.lax.bitcast_convert_type((exponents.astype(jnp.int32) + 127) << 23, jnp.float32)


def make_topology(size: int) -> Topology:
    """Builds cells (row-major) with edges along rows and columns, and a node per direction, connected with all cells.

    The relation of a cell and a direction is the cell's depth: its distance from the wall to which the tiles slide.
    """
    num_cells = size * size
    row, column = np.divmod(np.arange(num_cells), size)
    down, right = displacements(size, size)
    up, left = -down * (right == 0), -right * (down == 0)
    depths = (column, row, size - 1 - column, size - 1 - row)
    matrix = np.full((num_cells + len(DIRECTIONS),) * 2, -1, np.int32)
    cells = matrix[:num_cells, :num_cells]
    for number, (direction, distance, depth) in enumerate(zip(DIRECTIONS, (left, up, -left, -up), depths)):
        bucket = np.minimum(distance, len(DISTANCES)) - 1
        np.copyto(cells, VOCABULARY.index(f"cell {direction} 1") + bucket, where=distance > 0)
        node = num_cells + number
        matrix[node, :num_cells] = VOCABULARY.index(f"cell>{direction} at depth 0") + np.minimum(depth, len(DEPTHS) - 1)
        matrix[:num_cells, node] = VOCABULARY.index(f"{direction}>cell")
    np.fill_diagonal(matrix, VOCABULARY.index("self"))
    kinds = np.repeat([CELL, DIRECTION], [num_cells, len(DIRECTIONS)])
    actions = num_cells + np.arange(len(DIRECTIONS))
    return topology_from_matrix(VOCABULARY, matrix, kinds, (actions, actions), (size, size))


def make_symmetries(size: int) -> Symmetries:
    """Lists `grid_symmetries` of the square, and for each the preimages of left, up, right and down."""
    preimages = [(LEFT, UP, RIGHT, DOWN), (RIGHT, UP, LEFT, DOWN), (LEFT, DOWN, RIGHT, UP), (RIGHT, DOWN, LEFT, UP)]
    preimages += [(each[UP], each[LEFT], each[DOWN], each[RIGHT]) for each in preimages]
    actions = np.array(preimages, np.int32)
    return Symmetries(np.concatenate([grid_symmetries(size, size), size * size + actions], axis=1), actions)


def make_2048(name: str) -> TwentyFortyEightGame:
    """Makes `2048` or `2048:N`."""
    match = re.fullmatch("2048(?::([1-9][0-9]{0,5}))?", name)
    if not match:
        raise UserError(f"board {name}: it must be 2048 or 2048:SIZE, e.g. 2048:3")
    if match[1] == str(USUAL_SIZE):
        raise UserError(f"board {name}: the board of this size is called 2048")
    return TwentyFortyEightGame(int(match[1] or USUAL_SIZE))
