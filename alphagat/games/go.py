"""Go on boards of 5 to 19 lines: area scoring (Tromp-Taylor), suicide and immediate retaking of a ko are illegal.

The rules are those of Pgx 2.6.0, checked against it move by move. Differences from common rules:

- A move that repeats an earlier whole-board position (positional superko) is legal but loses the game immediately.
  OpenSpiel scores it as a draw; most rule sets forbid it.
- Two consecutive passes, or 2 * N * N moves, end the game. All stones on the board are alive.
- Komi ends in .5, so there are no draws. The default is 7.5 on every board. With perfect play, Black is believed to win
  by 25 points on 5x5, 4 on 6x6, 9 on 7x7 and 7 on 9x9; a komi close to that is fair.

Row 0 is the top. Columns skip the letter i, as in GTP.
"""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.errors import UserError
from alphagat.games import base, go_rules, places
from alphagat.games.drawings.stones import STONES, draw_intersections
from alphagat.games.go_rules import NUM_RECENT, GoState
from alphagat.games.rays import DIRECTIONS, displacements, symmetries_with_pass
from alphagat.games.transition import win_rewards
from alphagat.graphs.topology import RelationVocabulary, Topology, topology_from_matrix

MIN_SIZE, MAX_SIZE = 5, 19
MIN_KOMI, MAX_KOMI, KOMI = 0.5, 39.5, 7.5
COLUMNS = "abcdefghjklmnopqrst"
VOCABULARY = RelationVocabulary(
    family="go",
    version=1,
    relations=("self", *(name for name, _, _ in DIRECTIONS), "cell>pass", "pass>cell"),
    node_kinds=("cell", "pass"),
)


class GoGame(base.Game):
    """The rules, topology and features of one board.

    Features per node: own stone; opponent's stone; empty; stone in atari; ko; legal; played last; one, two and three
    moves before that; on the first, second and third line; komi / 10 from the perspective of the player to move; the
    opponent has just passed; moves played / maximum length of a game; stone whose chain has two, and three, liberties.
    Pass is a node, too; its features for stones and lines are 0.
    """

    num_features = 18
    history_features = tuple(range(6, 6 + NUM_RECENT))  # the opponent's pass has a feature of its own
    player_colours = (("black", STONES[0]), ("white", STONES[1]))

    def __init__(self, name: str, size: int, komi: float = KOMI):
        """Makes a board of `size` x `size` lines. Raises UserError for an invalid size or komi."""
        if not MIN_SIZE <= size <= MAX_SIZE:
            raise UserError(f"board {name}: size {size} is out of range; use {MIN_SIZE} to {MAX_SIZE}")
        if not (MIN_KOMI <= komi <= MAX_KOMI and komi % 1 == 0.5):
            raise UserError(f"board {name}: komi {komi:g} is not possible; use {MIN_KOMI} to {MAX_KOMI} in steps of 1")
        self.name, self.size, self.komi = name, size, komi
        self.goal = f"The larger area wins: stones and the points that only they enclose. White gets {komi:g} points."
        self.max_plies = 2 * size * size
        self.topology = make_topology(size)
        self.symmetries = symmetries_with_pass(size)
        self.action_names = (*(f"{letter}{size - row}" for row in range(size) for letter in COLUMNS[:size]), "pass")

    def init(self, key: jax.Array) -> GoState:
        del key
        num_cells = self.size * self.size
        return GoState(
            current_player=jnp.int8(0),
            rewards=jnp.zeros(2, jnp.float32),
            terminated=jnp.bool_(False),
            chains=jnp.zeros(num_cells, go_rules.label_type(self.size)),
            liberties=jnp.zeros(num_cells, go_rules.label_type(self.size)),
            ko=jnp.int16(-1),
            recent=jnp.full(NUM_RECENT, -1, jnp.int16),
            num_moves=jnp.int16(0),
            hashes=jnp.zeros((self.max_plies, 2), jnp.uint32),
        )

    def step(self, state: GoState, action: jax.Array, key: jax.Array) -> GoState:
        del key
        chains, ko = go_rules.place(state, action)
        passed = action == self.size * self.size
        hashed = go_rules.hash_of(chains)
        repeats = (state.hashes == hashed[None, :]).all(axis=-1).any() & ~passed
        num_moves = state.num_moves + jnp.int16(1)
        over = repeats | (passed & self._has_passed(state)) | (num_moves == self.max_plies)
        ended = over & ~state.terminated
        lead = go_rules.area_lead(chains, ended & ~repeats)
        winner = jnp.where(repeats, 1 - state.current_player, jnp.where(lead > self.komi, 0, 1))
        now = jnp.arange(self.max_plies)[:, None] == state.num_moves
        after = state.replace(
            current_player=jnp.int8(1) - state.current_player,
            rewards=win_rewards(winner, ended),
            terminated=over,
            chains=chains,
            liberties=go_rules.count_liberties(chains),
            ko=ko,
            recent=jnp.concatenate([action.astype(jnp.int16)[None], state.recent[:-1]]),
            num_moves=num_moves,
            hashes=jnp.where(now, hashed[None, :], state.hashes),
        )
        return base.absorb(state, after)

    def observe(self, state: GoState) -> jax.Array:
        own = state.chains * (1 - 2 * state.current_player).astype(state.chains.dtype)
        ko = jnp.arange(len(own)) == state.ko
        in_atari, two, three = (state.liberties == count for count in (1, 2, 3))
        cells = jnp.stack([own > 0, own < 0, own == 0, in_atari, ko], axis=-1)
        played = jnp.arange(self.num_actions)[:, None] == state.recent[None, :]
        changing = [jnp.pad(cells, ((0, 1), (0, 0))), state.legal_action_mask[:, None], played]
        komi = jnp.where(state.current_player == 0, jnp.float32(-self.komi / 10), jnp.float32(self.komi / 10))
        over = state.num_moves.astype(jnp.float32) / self.max_plies
        shared = jnp.stack([komi, self._has_passed(state).astype(jnp.float32), over])
        nodes = [
            jnp.concatenate(changing, axis=-1).astype(jnp.float32),
            jnp.asarray(_line_features(self.size)),
            jnp.broadcast_to(shared[None, :], (self.num_actions, 3)),
            jnp.pad(jnp.stack([two, three], axis=-1), ((0, 1), (0, 0))).astype(jnp.float32),
        ]
        return jnp.concatenate(nodes, axis=-1)

    def truncation_rewards(self, state: GoState) -> jax.Array:
        """Scores the current stones; all are alive."""
        lead = go_rules.area_lead(state.chains, jnp.bool_(True))
        return win_rewards(jnp.where(lead > self.komi, 0, 1), jnp.bool_(True))

    def ownership(self, state: GoState, needed: jax.Array) -> jax.Array:
        return jnp.pad(go_rules.area_owners(state.chains, needed), (0, 1))  # the pass has no owner

    def counts(self, state: GoState) -> tuple[float, float] | None:
        """Returns the areas at the end, White's with komi; None before, and after a repeated position."""
        if not state.terminated or self._is_repeated(state):
            return None
        owners = np.asarray(go_rules.area_owners(state.chains, jnp.bool_(True)))
        return float((owners > 0).sum()), float((owners < 0).sum()) + self.komi

    def render(self, state: GoState) -> str:
        stones = np.sign(np.asarray(state.chains)).reshape(self.size, self.size)
        rows = [f"{self.size - row:2} {' '.join('.xo'[stone] for stone in line)}" for row, line in enumerate(stones)]
        return "\n".join((*rows, f"   {' '.join(COLUMNS[: self.size])}", self._status(state)))

    def render_svg(self, state: GoState) -> str:
        players = np.array([-1, 0, 1])[np.sign(np.asarray(state.chains))].reshape(self.size, self.size)
        last = int(state.recent[0])
        marked = divmod(last, self.size) if 0 <= last < self.size * self.size else None
        names = tuple(str(self.size - row) for row in range(self.size))
        return draw_intersections(players, marked, names, tuple(COLUMNS[: self.size]))

    def node_places(self, state: GoState) -> np.ndarray:
        return np.concatenate([places.grid_places(self.size, self.size), places.nowhere(1)])

    def _status(self, state: GoState) -> str:
        last = int(state.recent[0])
        move = f"move {int(state.num_moves)}"
        if not state.terminated:
            played = f" after {self.action_names[last]}" if last >= 0 else ""
            return f"{move}{played}: {('x (black)', 'o (white)')[int(state.current_player)]} to move"
        if self._is_repeated(state):
            winner = int(state.current_player)
            return f"{move}: {'xo'[winner]} won, {'ox'[winner]} repeated a position"
        lead = int(go_rules.area_lead(state.chains, jnp.bool_(True))) - self.komi
        return f"{move}: {'xo'[lead < 0]} won by {abs(lead)} points"

    def _is_repeated(self, state: GoState) -> bool:
        """Returns whether the last move, which ended the game, repeated a position."""
        hashes = np.asarray(state.hashes)
        repeats = (hashes == hashes[int(state.num_moves) - 1]).all(axis=-1).sum() > 1
        return bool(repeats) and int(state.recent[0]) < self.size * self.size

    def _has_passed(self, state: GoState) -> jax.Array:
        """Returns whether the last move was a pass."""
        return state.recent[0] == self.size * self.size


@functools.cache
def _line_features(size: int) -> np.ndarray:
    """Returns `[N * N + 1, 3]` float32: on the first, second, third line from the edge; 0 for the pass."""
    row, column = np.divmod(np.arange(size * size), size)
    edge = np.minimum(np.minimum(row, size - 1 - row), np.minimum(column, size - 1 - column))
    return np.pad(edge[:, None] == np.arange(3), ((0, 1), (0, 0))).astype(np.float32)


def make_topology(size: int) -> Topology:
    """Builds cells (row-major) with edges from their eight neighbours, and the pass, connected with all cells."""
    num_cells = size * size
    down, right = displacements(size, size)
    matrix = np.full((num_cells + 1, num_cells + 1), -1, np.int32)
    for name, row_step, column_step in DIRECTIONS:
        matrix[:-1, :-1][(down == row_step) & (right == column_step)] = VOCABULARY.index(name)
    matrix[-1, :-1], matrix[:-1, -1] = VOCABULARY.index("cell>pass"), VOCABULARY.index("pass>cell")
    np.fill_diagonal(matrix, VOCABULARY.index("self"))
    kinds = np.repeat([0, 1], [num_cells, 1])
    actions = np.arange(num_cells + 1)
    return topology_from_matrix(VOCABULARY, matrix, kinds, (actions, actions), (size, size))


def name_of(size: int, komi: float) -> str:
    """Returns the name of a board: `go:N` with the usual komi, else `go:N:KOMI`."""
    return f"go:{size}" if komi == KOMI else f"go:{size}:{komi:g}"


def make_go(name: str) -> GoGame:
    """Makes `go:N`, or `go:N:KOMI` with a komi other than the usual one."""
    match = re.fullmatch(r"go:([1-9][0-9]{0,5})(?::([1-3]?[0-9])\.5)?", name)
    if not match:
        raise UserError(
            f"board {name}: it must be go:SIZE or go:SIZE:KOMI with a komi from {MIN_KOMI} to {MAX_KOMI}, "
            "e.g. go:9 or go:9:6.5"
        )
    size, komi = int(match[1]), int(match[2]) + 0.5 if match[2] else KOMI
    if name != name_of(size, komi):
        raise UserError(f"board {name}: the board with this komi is called {name_of(size, komi)}")
    return GoGame(name, size, komi)
