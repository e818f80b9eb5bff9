"""How many stones a Hex player needs to connect two borders, if every bridge holds.

A bridge joins two cells, or a cell and a border, through two empty cells. If the opponent enters one of these, the
player takes the other, so a bridge counts as a connection. Bridges that overlap may fail, and so may one that the
opponent enters with another threat: the count is a heuristic.

Each row is a bit set in a word of its own, and bit c is column c. All operations are arithmetic on words, which XLA
vectorizes over positions.
"""

import functools
import operator
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

RING = ((-1, 0), (-1, 1), (0, 1), (1, 0), (1, -1), (0, -1))  # the neighbours of a cell; consecutive ones touch
# The step of each bridge, and those to the two cells between.
BRIDGES = tuple(((a[0] + b[0], a[1] + b[1]), a, b) for a, b in zip(RING, (*RING[1:], RING[0])))

Rows = Sequence[jax.Array]  # N words of equal shape


class _Front(NamedTuple):
    """The cells that some number of stones connects with the top border.

    Attributes:
      reached: those cells.
      before: those of the step before.
      paid: `[B]`, whether the last step reached empty cells, which cost a stone, rather than own stones.
      needed: `[B]` uint32, the stones that the cells of the last step need, at most N.
      digits: the binary digits of the stones that earlier cells need, from the lowest.
    """

    reached: Rows
    before: Rows
    paid: jax.Array
    needed: jax.Array
    digits: Sequence[Rows]

    def has_grown(self) -> jax.Array:
        """Returns `[B]`, whether the last step reached a cell."""
        return functools.reduce(operator.or_, [a ^ b for a, b in zip(self.reached, self.before)]) != 0


def stones_needed(stones: jax.Array) -> jax.Array:
    """Returns `[2, N, N]` int32, the stones that each player needs for a chain through each cell between their borders.

    N if there is no chain that needs fewer, as through stones of the other player.

    Args:
      stones: `[N, N]`, 1 for player 0, who connects top and bottom, -1 for player 1, 0 for empty cells.
    """
    size = len(stones)
    boards = jnp.stack([stones, -stones.T])
    # Half a turn exchanges the borders of a player.
    borders = _from_top(jnp.concatenate([boards, boards[:, ::-1, ::-1]])).reshape(2, 2, size, size)
    first, second = borders[0], borders[1, :, ::-1, ::-1]
    chains = jnp.where((first < size) & (second < size), first + second - (boards == 0), size)
    return jnp.minimum(jnp.stack([chains[0], chains[1].T]), size)


def _from_top(boards: jax.Array) -> jax.Array:
    """Returns `[B, N, N]`, the stones needed to connect each cell with the top border, itself included; at most N.

    A step of the loop reaches own stones beside the cells reached so far or, if there are none, empty cells. Each board
    of a batch steps on its own, and the loop ends with the slowest.

    Args:
      boards: `[B, N, N]`, positive for stones of the player who connects top and bottom, negative for the other's.
    """
    size = boards.shape[-1]
    own, empty = _pack(boards > 0), _pack(boards == 0)
    held = [[_look(empty, row, here) & _look(empty, row, there) for _, here, there in BRIDGES] for row in range(size)]
    nothing, everything = jnp.zeros_like(own[0]), jnp.full_like(own[0], 2**size - 1)

    def neighbours(reached: Rows, row: int) -> jax.Array:
        near = [_look(reached, row, step, everything) for step in RING]
        far = [_look(reached, row, step, everything) & mask for (step, _, _), mask in zip(BRIDGES, held[row])]
        return functools.reduce(operator.or_, near + far)

    def advance(front: _Front) -> _Front:
        # XLA repeats for each word what several new words share: so no new word depends on another one.
        pays = ~(front.paid | front.has_grown())
        cells = [jnp.where(pays, *pair) for pair in zip(empty, own)]
        latest = [now & ~before for now, before in zip(front.reached, front.before)]
        is_one = [(front.needed >> digit) & 1 for digit in range(len(front.digits))]
        return _Front(
            reached=[words | cells[row] & neighbours(front.reached, row) for row, words in enumerate(front.reached)],
            before=front.reached,
            paid=pays,
            needed=jnp.minimum(front.needed + pays, np.uint32(size)),
            digits=[
                [words | jnp.where(one, new, np.uint32(0)) for words, new in zip(rows, latest)]
                for one, rows in zip(is_one, front.digits)
            ],
        )

    def goes_on(front: _Front) -> jax.Array:
        return ((~front.paid | front.has_grown()) & (front.needed < size)).any()

    no_cells, all_cells = [nothing] * size, [everything] * size
    first = _Front(no_cells, all_cells, nothing != 0, nothing, [no_cells] * size.bit_length())
    last = jax.lax.while_loop(goes_on, advance, first)
    needed = sum(_unpack(rows) << digit for digit, rows in enumerate(last.digits))
    return jnp.where(_unpack(last.before) > 0, needed, size)  # a cell of the last step alone needs N stones


def _pack(cells: jax.Array) -> Rows:
    """Packs `[B, N, N]` bool into N `[B]` words."""
    bits = np.uint32(1) << np.arange(cells.shape[-1], dtype=np.uint32).reshape(1, 1, -1)
    words = jnp.where(cells, bits, np.uint32(0)).sum(axis=-1, dtype=jnp.uint32)
    return [words[:, row] for row in range(words.shape[-1])]


def _unpack(rows: Rows) -> jax.Array:
    """Returns `[B, N, N]` int32, 1 for the cells in the words."""
    columns = np.arange(len(rows), dtype=np.uint32).reshape(1, 1, -1)
    return ((jnp.stack(rows, axis=-1)[..., None] >> columns) & 1).astype(jnp.int32)


def _look(rows: Rows, row: int, step: tuple[int, int], above: jax.Array | None = None) -> jax.Array:
    """Returns a word whose bit c is the cell `step` rows and columns away from column c of the row.

    `above` is the row above the first one. Other cells off the board are 0.
    """
    there, right = row + step[0], np.uint32(abs(step[1]))
    if there == -1 and above is not None:
        words = above
    elif 0 <= there < len(rows):
        words = rows[there]
    else:
        return jnp.zeros_like(rows[0])
    return words >> right if step[1] > 0 else words << right
