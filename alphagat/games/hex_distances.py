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

import jax
import jax.numpy as jnp
import numpy as np

RING = ((-1, 0), (-1, 1), (0, 1), (1, 0), (1, -1), (0, -1))  # the neighbours of a cell; consecutive ones touch
# The step of each bridge, and those to the two cells between.
BRIDGES = tuple(((a[0] + b[0], a[1] + b[1]), a, b) for a, b in zip(RING, (*RING[1:], RING[0])))

Rows = Sequence[jax.Array]  # N words of equal shape


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

    Args:
      boards: `[B, N, N]`, positive for stones of the player who connects top and bottom, negative for the other's.
    """
    size = boards.shape[-1]
    own, empty = _pack(boards > 0), _pack(boards == 0)
    held = [[_look(empty, row, here) & _look(empty, row, there) for _, here, there in BRIDGES] for row in range(size)]
    border = jnp.full_like(own[0], 2**size - 1)

    def neighbours(reached: Rows, row: int) -> jax.Array:
        near = [_look(reached, row, step, border) for step in RING]
        far = [_look(reached, row, step, border) & mask for (step, _, _), mask in zip(BRIDGES, held[row])]
        return functools.reduce(operator.or_, near + far)

    def join(pair: tuple[Rows, Rows]) -> tuple[Rows, Rows]:
        reached = pair[1]
        return reached, [words | own[row] & neighbours(reached, row) for row, words in enumerate(reached)]

    def has_grown(pair: tuple[Rows, Rows]) -> jax.Array:
        return functools.reduce(operator.or_, [(before != after).any() for before, after in zip(*pair)])

    def add_stone(reached: Rows, _: None) -> tuple[Rows, jax.Array]:
        reached = jax.lax.while_loop(has_grown, join, join((reached, reached)))[0]  # own stones cost nothing
        after = [words | empty[row] & neighbours(reached, row) for row, words in enumerate(reached)]
        return after, jnp.stack(reached, axis=-1)

    nothing = [jnp.zeros_like(border)] * size
    reached = jax.lax.scan(add_stone, nothing, None, length=size)[1]  # [N, B, N], with 0 to N - 1 stones
    columns = np.arange(size, dtype=np.uint32).reshape(1, 1, 1, size)
    return size - ((reached[..., None] >> columns) & 1).astype(jnp.int32).sum(axis=0)


def _pack(cells: jax.Array) -> Rows:
    """Packs `[B, N, N]` bool into N `[B]` words."""
    bits = np.uint32(1) << np.arange(cells.shape[-1], dtype=np.uint32).reshape(1, 1, -1)
    words = jnp.where(cells, bits, np.uint32(0)).sum(axis=-1, dtype=jnp.uint32)
    return [words[:, row] for row in range(words.shape[-1])]


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
