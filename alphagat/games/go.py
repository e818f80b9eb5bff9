"""Go on boards of 5 to 19 lines: area scoring (Tromp-Taylor), suicide and immediate retaking of a ko are illegal.

The rules are those of Pgx 2.6.0, checked against it move by move. Where they differ from what a person or another
library may expect:

- A play that repeats an earlier position of the whole board (positional superko) is not illegal: it ends the game at
  once, and whoever played it loses. OpenSpiel calls that a draw; most rule sets forbid the play.
- After 2 * N * N moves the game ends and is scored as it stands. So do two passes in a row: nothing is dead.
- Komi ends in .5, so there are no draws. It is 7.5 on every board unless the name says otherwise. Perfect play is
  believed to gain Black 25 points on 5x5, 4 on 6x6, 9 on 7x7 and 7 on 9x9: komi near those makes an even game.

Row 0 is the top. Columns skip the letter i, as in GTP.
"""

import functools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.errors import UserError
from alphagat.games import base, svg_stones
from alphagat.graphs.topology import RelationVocabulary, Topology, topology_from_matrix

MIN_SIZE, MAX_SIZE, KOMI = 5, 19, 7.5
NUM_RECENT = 4  # moves that a state remembers
COLUMNS = "abcdefghjklmnopqrst"
# (name, row step, column step) from the receiver to the sender
NEIGHBOURS = (
    ("n", -1, 0),
    ("ne", -1, 1),
    ("e", 0, 1),
    ("se", 1, 1),
    ("s", 1, 0),
    ("sw", 1, -1),
    ("w", 0, -1),
    ("nw", -1, -1),
)
VOCABULARY = RelationVocabulary(
    family="go",
    version=1,
    relations=("self", *(name for name, _, _ in NEIGHBOURS), "cell>pass", "pass>cell"),
    node_kinds=("cell", "pass"),
)
RELATION = {name: number for number, name in enumerate(VOCABULARY.relations)}


class GoState(base.State):
    """A position, and what superko and the network need of the moves before.

    Attributes:
      chains: `[N * N]` int8 (int16 above 11x11), 0 empty, else a label of the stone's chain: one more than the index of
        one of its stones, positive for player 0 (Black), negative for player 1 (White).
      atari: `[N * N]` bool, the stones whose chain has one liberty left.
      ko: `[]` int16, the cell where the player to move may not play, or -1.
      recent: `[NUM_RECENT]` int16, the last moves, the newest first, -1 before the first.
      num_moves: `[]` int16.
      hashes: `[2 * N * N, 2]` uint32, of the stones after each move, 0 for moves to come.
    """

    chains: jax.Array
    atari: jax.Array
    ko: jax.Array
    recent: jax.Array
    num_moves: jax.Array
    hashes: jax.Array

    @property
    def legal_action_mask(self) -> jax.Array:
        *batch, num_cells = self.chains.shape
        size = math.isqrt(num_cells)
        own = (self.chains > 0) == (self.current_player == 0)[..., None]
        # A stone lives if a neighbour is empty, a friend with another liberty, or an enemy without one.
        helps = (self.chains == 0) | (own != self.atari)
        helped = functools.reduce(jnp.logical_or, _neighbours(helps.reshape(*batch, size, size), False))
        cells = helped.reshape(self.chains.shape) & (self.chains == 0)
        cells &= jnp.broadcast_to(jnp.arange(num_cells), cells.shape) != self.ko[..., None]
        passing = jnp.ones((*batch, 1), bool)
        return jnp.concatenate([cells, passing], axis=-1) & ~self.terminated[..., None]


class GoGame(base.Game):
    """The rules, topology and features of one board.

    Features per node: own stone, opponent's stone, empty, stone in atari, ko, legal now, played last, one, two and
    three moves before that, on the first, second and third line, komi / 10 from the view of the player to move, the
    opponent has just passed, share of the longest game that is over. The pass is a node with the features that are
    not about stones and lines.
    """

    num_features = 16

    def __init__(self, name: str, size: int, komi: float = KOMI):
        """Makes a board of `size` x `size` lines. Raises UserError for sizes out of range."""
        if not MIN_SIZE <= size <= MAX_SIZE:
            raise UserError(f"board {name}: size {size} is out of range; take {MIN_SIZE} to {MAX_SIZE}")
        self.name, self.size, self.komi = name, size, komi
        self.max_plies = 2 * size * size
        self.topology = make_topology(size)
        self.symmetries = make_symmetries(size)
        self.action_names = (*(f"{letter}{size - row}" for row in range(size) for letter in COLUMNS[:size]), "pass")
        self._dtype = np.int8 if size * size < 127 else np.int16  # of labels and indices of cells
        self._around = _neighbour_table(size)
        # A hash is the sum of key * colour: multilinear hashing, Carter and Wegman 1979.
        self._keys = np.random.RandomState(size).randint(2**32, size=(2, size * size), dtype=np.uint32)

    def init(self, key: jax.Array) -> GoState:
        del key
        num_cells = self.size * self.size
        return GoState(
            current_player=jnp.int8(0),
            rewards=jnp.zeros(2, jnp.float32),
            terminated=jnp.bool_(False),
            chains=jnp.zeros(num_cells, self._dtype),
            atari=jnp.zeros(num_cells, bool),
            ko=jnp.int16(-1),
            recent=jnp.full(NUM_RECENT, -1, jnp.int16),
            num_moves=jnp.int16(0),
            hashes=jnp.zeros((self.max_plies, 2), jnp.uint32),
        )

    def step(self, state: GoState, action: jax.Array, key: jax.Array) -> GoState:
        del key
        chains, ko = self._place(state, action)
        passed = action == self.size * self.size
        hashed = self._hash(chains)
        repeats = (state.hashes == hashed[None, :]).all(axis=-1).any() & ~passed
        num_moves = state.num_moves + jnp.int16(1)
        over = repeats | (passed & self._has_passed(state)) | (num_moves == self.max_plies)
        ended = over & ~state.terminated
        black_wins = jnp.where(repeats, state.current_player == 1, self._black_leads(chains, ended & ~repeats))
        now = jnp.arange(self.max_plies)[:, None] == state.num_moves
        after = state.replace(
            current_player=jnp.int8(1) - state.current_player,
            terminated=over,
            chains=chains,
            atari=self._in_atari(chains),
            ko=ko,
            recent=jnp.concatenate([action.astype(jnp.int16)[None], state.recent[:-1]]),
            num_moves=num_moves,
            hashes=jnp.where(now, hashed[None, :], state.hashes),
        )
        after = jax.tree.map(lambda new, old: jnp.where(state.terminated, old, new), after, state)
        return after.replace(rewards=jnp.where(ended, _pay(black_wins), jnp.float32(0)))

    def observe(self, state: GoState) -> base.Features:
        own = state.chains if state.chains.dtype == np.int16 else state.chains.astype(jnp.int16)
        own = own * (jnp.int16(1) - jnp.int16(2) * state.current_player)
        ko = jnp.arange(len(own)) == state.ko
        cells = jnp.stack([own > 0, own < 0, own == 0, state.atari, ko], axis=-1)
        played = jnp.arange(self.num_actions)[:, None] == state.recent[None, :]
        changing = [jnp.pad(cells, ((0, 1), (0, 0))), state.legal_action_mask[:, None], played]
        komi = jnp.where(state.current_player == 0, jnp.float32(-self.komi / 10), jnp.float32(self.komi / 10))
        over = state.num_moves.astype(jnp.float32) / self.max_plies
        shared = jnp.stack([komi, self._has_passed(state).astype(jnp.float32), over])
        nodes = [
            jnp.concatenate(changing, axis=-1).astype(jnp.float32),
            jnp.asarray(_line_features(self.size)),
            jnp.broadcast_to(shared[None, :], (self.num_actions, 3)),
        ]
        return base.Features(nodes=jnp.concatenate(nodes, axis=-1))

    def truncation_rewards(self, state: GoState) -> jax.Array:
        """Scores the stones as they stand."""
        return _pay(self._black_leads(state.chains, jnp.bool_(True)))

    def render(self, state: GoState) -> str:
        stones = np.sign(np.asarray(state.chains)).reshape(self.size, self.size)
        rows = [f"{self.size - row:2} {' '.join('.xo'[stone] for stone in line)}" for row, line in enumerate(stones)]
        return "\n".join((*rows, f"   {' '.join(COLUMNS[: self.size])}", self._status(state)))

    def render_svg(self, state: GoState) -> str:
        players = np.array([-1, 0, 1])[np.sign(np.asarray(state.chains))].reshape(self.size, self.size)
        last = int(state.recent[0])
        marked = divmod(last, self.size) if 0 <= last < self.size * self.size else None
        names = tuple(str(self.size - row) for row in range(self.size))
        return svg_stones.draw_intersections(players, marked, names, tuple(COLUMNS[: self.size]))

    def _status(self, state: GoState) -> str:
        last = int(state.recent[0])
        move = f"move {int(state.num_moves)}"
        if not state.terminated:
            played = f" after {self.action_names[last]}" if last >= 0 else ""
            return f"{move}{played}: {('x (black)', 'o (white)')[int(state.current_player)]} to move"
        hashes = np.asarray(state.hashes)
        repeats = (hashes == hashes[int(state.num_moves) - 1]).all(axis=-1).sum() > 1
        if repeats and last < self.size * self.size:
            winner = int(state.current_player)
            return f"{move}: {'xo'[winner]} won, {'ox'[winner]} repeated a position"
        lead = int(self._area_lead(state.chains, jnp.bool_(True))) - self.komi
        return f"{move}: {'xo'[lead < 0]} won by {abs(lead)} points"

    def _has_passed(self, state: GoState) -> jax.Array:
        """Tells whether the last move was a pass."""
        return state.recent[0] == self.size * self.size

    def _hash(self, chains: jax.Array) -> jax.Array:
        """Returns `[2]` uint32, 0 for the empty board."""
        stones = jnp.where(chains > 0, jnp.uint32(1), jnp.where(chains < 0, jnp.uint32(2), jnp.uint32(0)))
        return (stones[None, :] * self._keys).sum(axis=-1, dtype=jnp.uint32)

    def _place(self, state: GoState, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns the chains after the move, and the cell of a ko or -1."""
        num_cells = self.size * self.size
        colour = (1 - 2 * state.current_player).astype(self._dtype)
        own = state.chains * colour  # labels of the player who moves are positive
        around = jnp.asarray(self._around)[action]  # [4], num_cells where there is no neighbour
        labels = jnp.concatenate([own, jnp.zeros(1, self._dtype)])[around]
        killed = (labels < 0) & jnp.concatenate([state.atari, jnp.zeros(1, bool)])[around]
        captured = _holds_any(own, labels, killed)
        walled_in = ((labels < 0) | (around == num_cells)).all()
        is_ko = walled_in & (captured.sum() == 1)
        ko = jnp.where(is_ko, jnp.where(captured, jnp.arange(num_cells), 0).sum(), -1).astype(jnp.int16)
        friends = labels > 0
        new = (action + 1).astype(self._dtype)
        label = jnp.minimum(new, jnp.where(friends, labels, new).min())
        own = jnp.where(captured, jnp.zeros_like(own), jnp.where(_holds_any(own, labels, friends), label, own))
        # The scatter of one stone comes last: it keeps XLA from repeating all of the above for each pair of cells in
        # `_in_atari`, which made a step ten times slower.
        return (own * colour).at[action].set(label * colour, mode="drop"), ko

    def _in_atari(self, chains: jax.Array) -> jax.Array:
        """Returns the `[N * N]` stones whose chain has one liberty: its first and its last one are the same."""
        num_cells = self.size * self.size
        none, beyond = np.array(0, self._dtype), np.array(num_cells + 1, self._dtype)
        empty = (chains == 0).reshape(self.size, self.size)
        index = jnp.arange(1, num_cells + 1, dtype=self._dtype).reshape(empty.shape)
        first = functools.reduce(jnp.minimum, _neighbours(jnp.where(empty, index, beyond), beyond)).ravel()
        last = functools.reduce(jnp.maximum, _neighbours(jnp.where(empty, index, none), none)).ravel()
        same = chains[:, None] == chains[None, :]
        # One pass over all pairs of cells, which is fused: nothing of size [N * N, N * N] is stored.
        first, last = jax.lax.reduce(
            (jnp.where(same, first[:, None], beyond), jnp.where(same, last[:, None], none)),
            (beyond, none),
            lambda one, other: (jnp.minimum(one[0], other[0]), jnp.maximum(one[1], other[1])),
            dimensions=(0,),
        )
        return (first == last) & (chains != 0)

    def _black_leads(self, chains: jax.Array, needed: jax.Array) -> jax.Array:
        return self._area_lead(chains, needed) > self.komi

    def _area_lead(self, chains: jax.Array, needed: jax.Array) -> jax.Array:
        """Counts Black's area minus White's: stones, and what is empty and reaches stones of one colour only.

        Where it is not `needed` the result means nothing, and a batch that needs none does not search.
        """
        stones = chains.reshape(self.size, self.size)
        empty = (stones == 0)[None]
        start = jnp.stack([stones > 0, stones < 0])

        def spread(carry):
            reached, _ = carry  # [2, N, N]
            wider = reached | (empty & functools.reduce(jnp.logical_or, _neighbours(reached, False)))
            return wider, (wider != reached).any()

        (black, white), _ = jax.lax.while_loop(lambda carry: carry[1], spread, (start, needed))
        return (black & ~white).sum() - (white & ~black).sum()


def _pay(black_wins: jax.Array) -> jax.Array:
    return jnp.where((jnp.arange(2) == 0) == black_wins, jnp.float32(1), jnp.float32(-1))


def _holds_any(own: jax.Array, labels: jax.Array, wanted: jax.Array) -> jax.Array:
    """Returns the `[N * N]` cells whose label is one of those of the `[4]` labels that are `wanted`."""
    return functools.reduce(jnp.logical_or, [(own == labels[way]) & wanted[way] for way in range(4)])


def _neighbours(board: jax.Array, outside) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Returns what lies below, above, right and left of each cell of `[..., N, N]`, and `outside` beyond the edge."""
    row, column = jnp.full_like(board[..., :1, :], outside), jnp.full_like(board[..., :1], outside)
    return (
        jnp.concatenate([board[..., 1:, :], row], axis=-2),
        jnp.concatenate([row, board[..., :-1, :]], axis=-2),
        jnp.concatenate([board[..., 1:], column], axis=-1),
        jnp.concatenate([column, board[..., :-1]], axis=-1),
    )


def _neighbour_table(size: int) -> np.ndarray:
    """Returns the `[N * N + 1, 4]` int32 neighbours of each cell, N * N for those off the board, and for a pass."""
    row, column = np.divmod(np.arange(size * size), size)
    table = np.full((size * size + 1, 4), size * size, np.int32)
    for way, (down, right) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
        inside = (row + down >= 0) & (row + down < size) & (column + right >= 0) & (column + right < size)
        table[:-1, way] = np.where(inside, (row + down) * size + column + right, size * size)
    return table


@functools.cache
def _line_features(size: int) -> np.ndarray:
    """`[N * N + 1, 3]` float32: on the first, second, third line from the edge; 0 for the pass."""
    row, column = np.divmod(np.arange(size * size), size)
    edge = np.minimum(np.minimum(row, size - 1 - row), np.minimum(column, size - 1 - column))
    return np.pad(edge[:, None] == np.arange(3), ((0, 1), (0, 0))).astype(np.float32)


def make_topology(size: int) -> Topology:
    """Builds cells (row-major) that see their eight neighbours, and the pass, which sees and is seen by all cells."""
    num_cells = size * size
    row, column = np.divmod(np.arange(num_cells), size)
    down, right = row[None, :] - row[:, None], column[None, :] - column[:, None]  # (receiver, sender)
    matrix = np.full((num_cells + 1, num_cells + 1), -1, np.int32)
    for name, row_step, column_step in NEIGHBOURS:
        matrix[:-1, :-1][(down == row_step) & (right == column_step)] = RELATION[name]
    matrix[-1, :-1], matrix[:-1, -1] = RELATION["cell>pass"], RELATION["pass>cell"]
    np.fill_diagonal(matrix, RELATION["self"])
    kinds = np.repeat([0, 1], [num_cells, 1])
    actions = np.arange(num_cells + 1)
    return topology_from_matrix(VOCABULARY, matrix, kinds, (actions, actions), (size, size))


def make_symmetries(size: int) -> base.Symmetries:
    """Lists the 8 symmetries of a square."""
    grid = np.arange(size * size).reshape(size, size)
    grids = [grid, grid[:, ::-1], grid[::-1], grid[::-1, ::-1]]
    cells = np.stack([turned.ravel() for turned in (*grids, *(turned.T for turned in grids))])
    nodes = np.pad(cells, ((0, 0), (0, 1)), constant_values=size * size).astype(np.int32)
    return base.Symmetries(nodes, nodes)


def make_go(arguments: tuple[str, ...]) -> GoGame:
    """Makes `go:N` or `go:N:KOMI`."""
    name = ":".join(("go", *arguments))
    match = re.fullmatch(r"go:([1-9][0-9]{0,5})(?::(0|[1-3]?[0-9])\.5)?", name)
    if not match:
        raise UserError(f"board {name}: want go:SIZE or go:SIZE:KOMI with a komi from 0.5 to 39.5, e.g. go:9 or go:9:6.5")
    return GoGame(name, int(match[1]), int(match[2]) + 0.5 if match[2] else KOMI)
