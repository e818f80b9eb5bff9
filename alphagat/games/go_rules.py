"""Rules of Go: chains, captures, ko and area."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.games import base
from alphagat.games.rays import neighbour_table

NUM_RECENT = 4  # moves that a state remembers
NEIGHBOURS = ((1, 0), (-1, 0), (0, 1), (0, -1))  # steps down and to the right


class GoState(base.State):
    """A position with the history that superko and the network need.

    Attributes:
      chains: `[N * N]` int8 (int16 above 11x11), 0 if empty, else the label of the stone's chain: the index of one of
        its stones plus 1, positive for player 0 (Black), negative for player 1 (White).
      liberties: `[N * N]`, of the same type: the number of liberties of each stone's chain, 0 if empty.
      ko: `[]` int16, the cell that is forbidden to the player to move, or -1.
      recent: `[NUM_RECENT]` int16, the last moves, newest first; -1 before the first move.
      num_moves: `[]` int16.
      hashes: `[2 * N * N, 2]` uint32, of the stones after each move; 0 for future moves.
    """

    chains: jax.Array
    liberties: jax.Array
    ko: jax.Array
    recent: jax.Array
    num_moves: jax.Array
    hashes: jax.Array

    @property
    def legal_action_mask(self) -> jax.Array:
        *batch, num_cells = self.chains.shape
        size = math.isqrt(num_cells)
        own = (self.chains > 0) == (self.current_player == 0)[..., None]
        # A stone lives if a neighbour is empty, its own chain with another liberty, or an enemy chain with no other.
        helps = (self.chains == 0) | (own != (self.liberties == 1))
        helped = functools.reduce(jnp.logical_or, neighbours(helps.reshape(*batch, size, size), False))
        cells = helped.reshape(self.chains.shape) & (self.chains == 0)
        cells &= jnp.broadcast_to(jnp.arange(num_cells), cells.shape) != self.ko[..., None]
        passing = jnp.ones((*batch, 1), bool)
        return jnp.concatenate([cells, passing], axis=-1) & ~self.terminated[..., None]


def label_type(size: int) -> type:
    """Returns the integer type for numbers up to one more than the number of cells."""
    return np.int8 if size * size < 127 else np.int16


def place(state: GoState, action: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Plays a legal move; returns the new chains, and the cell of the ko or -1."""
    num_cells, dtype = len(state.chains), state.chains.dtype
    colour = (1 - 2 * state.current_player).astype(dtype)
    own = state.chains * colour  # positive for the player who moves
    table = neighbour_table(math.isqrt(num_cells), NEIGHBOURS, outside=num_cells)
    table = np.pad(table, ((0, 1), (0, 0)), constant_values=num_cells)  # the row of the pass
    around = jnp.asarray(table)[action]  # [4], num_cells if off the board
    labels = jnp.concatenate([own, jnp.zeros(1, dtype)])[around]
    killed = (labels < 0) & (jnp.concatenate([state.liberties, jnp.zeros(1, dtype)])[around] == 1)
    captured = _holds_any(own, labels, killed)
    walled_in = ((labels < 0) | (around == num_cells)).all()
    is_ko = walled_in & (captured.sum() == 1)
    ko = jnp.where(is_ko, jnp.where(captured, jnp.arange(num_cells), 0).sum(), -1).astype(jnp.int16)
    friends = labels > 0
    new = (action + 1).astype(dtype)
    label = jnp.minimum(new, jnp.where(friends, labels, new).min())
    own = jnp.where(captured, jnp.zeros_like(own), jnp.where(_holds_any(own, labels, friends), label, own))
    # The scatter of one stone comes last. Otherwise XLA recomputes everything above for each pair of cells in
    # `count_liberties`, which makes a step four times slower.
    return (own * colour).at[action].set(label * colour, mode="drop"), ko


def count_liberties(chains: jax.Array) -> jax.Array:
    """Returns the number of liberties of each stone's chain, `[N * N]`, 0 for empty cells."""
    size, empty = math.isqrt(len(chains)), chains == 0
    around = neighbours(chains.reshape(size, size), 0)
    # One fused pass over all pairs of a stone and a liberty: no array of shape [N * N, N * N] is stored.
    touches = functools.reduce(jnp.logical_or, (chains[:, None] == labels.ravel()[None, :] for labels in around))
    return jnp.where(empty, 0, (touches & empty[None, :]).sum(axis=1, dtype=chains.dtype))


def area_lead(chains: jax.Array, needed: jax.Array) -> jax.Array:
    """Returns Black's area minus White's, by `area_owners`."""
    return area_owners(chains, needed).sum(dtype=jnp.int32)


def area_owners(chains: jax.Array, needed: jax.Array) -> jax.Array:
    """Returns `[N * N]` int8: 1 for Black's area, -1 for White's, 0 otherwise.

    An area consists of the stones of one colour and the empty regions that touch only this colour. If
    `needed` is False, the result is undefined. The flood fill is skipped if no element of a batch needs it.
    """
    size = math.isqrt(len(chains))
    stones = chains.reshape(size, size)
    empty = (stones == 0)[None]

    def spread(carry):
        reached, _ = carry  # [2, N, N]
        wider = reached | (empty & functools.reduce(jnp.logical_or, neighbours(reached, False)))
        return wider, (wider != reached).any()

    start = jnp.stack([stones > 0, stones < 0])
    (black, white), _ = jax.lax.while_loop(lambda carry: carry[1], spread, (start, needed))
    return (black.astype(jnp.int8) - white.astype(jnp.int8)).ravel()


def hash_of(chains: jax.Array) -> jax.Array:
    """Returns `[2]` uint32, the sum of key * colour: multilinear hashing (Carter and Wegman 1979). 0 for no stones."""
    keys = np.random.RandomState(len(chains)).randint(2**32, size=(2, len(chains)), dtype=np.uint32)
    stones = jnp.where(chains > 0, jnp.uint32(1), jnp.where(chains < 0, jnp.uint32(2), jnp.uint32(0)))
    return (stones[None, :] * keys).sum(axis=-1, dtype=jnp.uint32)


def neighbours(board: jax.Array, outside) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Returns the values below, above, right and left of each cell of `[..., N, N]`; `outside` beyond the edge."""
    row, column = jnp.full_like(board[..., :1, :], outside), jnp.full_like(board[..., :1], outside)
    return (
        jnp.concatenate([board[..., 1:, :], row], axis=-2),
        jnp.concatenate([row, board[..., :-1, :]], axis=-2),
        jnp.concatenate([board[..., 1:], column], axis=-1),
        jnp.concatenate([column, board[..., :-1]], axis=-1),
    )


def _holds_any(own: jax.Array, labels: jax.Array, wanted: jax.Array) -> jax.Array:
    """Returns the `[N * N]` cells whose label is among the `wanted` ones of the `[4]` labels."""
    return functools.reduce(jnp.logical_or, [(own == labels[way]) & wanted[way] for way in range(4)])
