"""Sets of squares of boards up to 8 x 8, as two words of 32 bits, with shifts and sliding rays.

Bit `row * N + column` represents a square. All functions are arithmetic on words, for one state or its eight
directions, without slices, so that XLA fuses them into one loop. An earlier version, with one byte per row and slices,
recomputed shared rays, so a step took almost 100 times as long on a CPU.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.games.rays import DIRECTIONS

Steps = tuple[tuple[int, int], ...]  # rows down and columns to the right
STEPS: Steps = tuple((down, right) for _, down, right in DIRECTIONS)


class Squares(NamedTuple):
    """Sets of squares: two uint32 words of any shape, the first for squares below 32."""

    low: jax.Array
    high: jax.Array

    def __and__(self, other: "Squares") -> "Squares":
        return Squares(self.low & other.low, self.high & other.high)

    def __or__(self, other: "Squares") -> "Squares":
        return Squares(self.low | other.low, self.high | other.high)

    def __xor__(self, other: "Squares") -> "Squares":
        return Squares(self.low ^ other.low, self.high ^ other.high)

    def __invert__(self) -> "Squares":
        return Squares(~self.low, ~self.high)

    def where(self, condition) -> "Squares":
        """Returns the set if the condition holds, else the empty set."""
        zero = np.uint32(0)
        return Squares(jnp.where(condition, self.low, zero), jnp.where(condition, self.high, zero))

    def any(self) -> jax.Array:
        return (self.low | self.high) != 0

    def size(self) -> jax.Array:
        return jax.lax.population_count(self.low) + jax.lax.population_count(self.high)

    def take(self, index: int) -> "Squares":
        return Squares(self.low[index], self.high[index])

    def union(self) -> "Squares":
        """Returns the union along the first axis."""
        return Squares(jnp.bitwise_or.reduce(self.low, axis=0), jnp.bitwise_or.reduce(self.high, axis=0))

    def opposite(self) -> "Squares":
        """Swaps the sets of opposite directions among the 8."""
        return Squares(jnp.roll(self.low, 4), jnp.roll(self.high, 4))

    def words(self, num_squares: int) -> jax.Array:
        """Returns the words along a last axis: one if the board fits, else two."""
        return jnp.stack([self.low, self.high] if num_squares > 32 else [self.low], axis=-1)

    def mask(self, num_squares: int) -> jax.Array:
        """Unpacks sets of shape S into `[*S, num_squares]` bool."""
        words = jnp.stack([self.low, self.high], axis=-1)[..., None]
        bits = np.broadcast_to(np.arange(32, dtype=np.uint32), (*words.shape[:-1], 32))
        flags = (jnp.right_shift(words, bits) & np.uint32(1)) == 1
        return flags.reshape(*self.low.shape, 64)[..., :num_squares]


def turn_over(squares: Squares, size: int) -> Squares:
    """Flips the board vertically. No row may cross the word boundary, so `size` is at most 5 or exactly 8."""
    words = [jnp.zeros_like(squares.low), jnp.zeros_like(squares.high)]
    full = np.uint32(2**size - 1)
    for row in range(size):
        (here, low), (there, up) = divmod(row * size, 32), divmod((size - 1 - row) * size, 32)
        words[there] |= jnp.left_shift(jnp.right_shift(squares[here], np.uint32(low)) & full, np.uint32(up))
    return Squares(*words)


class _Shifts(NamedTuple):
    """Bit shifts of the words for each of `[D]` steps, uint32; a shift by 32 or more empties a word."""

    left: np.ndarray
    left_carry: np.ndarray
    right: np.ndarray
    right_carry: np.ndarray
    low: np.ndarray  # the squares that a step reaches without leaving the board
    high: np.ndarray


def from_words(words: jax.Array) -> Squares:
    """Undoes `Squares.words`."""
    return Squares(words[..., 0], words[..., 1] if words.shape[-1] == 2 else jnp.zeros_like(words[..., 0]))


def constant(squares) -> Squares:
    """Makes a set from square numbers."""
    bits = sum(1 << int(square) for square in squares)
    return Squares(*(np.uint32(word) for word in (bits & 0xFFFFFFFF, bits >> 32)))  # pyright: ignore[reportArgumentType]


def only(square: jax.Array) -> Squares:
    """Makes the set of one square from its number; the empty set for -1."""
    number = square.astype(jnp.uint32)
    bit = np.uint32(1)
    # -1 and negative differences wrap to large shifts, which empty the word.
    return Squares(jnp.left_shift(bit, number), jnp.left_shift(bit, number - np.uint32(32)))


def stack(sets: list[Squares]) -> Squares:
    return Squares(*(jnp.stack(words) for words in zip(*sets)))


def by_direction(squares: Squares) -> Squares:
    """Repeats a set for all 8 directions."""
    return Squares(*(jnp.broadcast_to(word, (len(STEPS),)) for word in squares))


@functools.cache
def _make_shifts(size: int, steps: Steps) -> _Shifts:
    amounts = [down * size + right for down, right in steps]
    left = [(amount, 32 - amount) if amount > 0 else (32, 32) for amount in amounts]
    right = [(-amount, 32 + amount) if amount < 0 else (32, 32) for amount in amounts]
    rows, columns = np.divmod(np.arange(size * size), size)
    inside = []
    for down, across in steps:
        row, column = rows - down, columns - across
        inside.append(constant(np.flatnonzero((row >= 0) & (row < size) & (column >= 0) & (column < size))))
    return _Shifts(*(np.array(word, np.uint32) for word in (*zip(*left), *zip(*right), *zip(*inside))))


def shift(squares: Squares, size: int, steps: Steps) -> Squares:
    """Moves one set by each of `[D]` steps, or each of `[..., D]` sets by its step; drops squares off the board."""
    table = _make_shifts(size, steps)
    by = _Shifts(*(np.broadcast_to(word, squares.low.shape or word.shape) for word in table))
    low, high = jnp.left_shift(squares.low, by.left), jnp.left_shift(squares.high, by.left)
    low |= jnp.right_shift(squares.low, by.right) | jnp.left_shift(squares.high, by.right_carry)
    high |= jnp.right_shift(squares.high, by.right) | jnp.right_shift(squares.low, by.left_carry)
    return Squares(low & by.low, high & by.high)


def walk(start: Squares, empty: Squares, targets: Squares, others: Squares, size: int) -> Squares:
    """Slides from `start` over empty squares in all directions; a ray includes the first square that is not empty.

    Args:
      start: `[8]` by direction.
      empty: `[8]`.
      targets: `[]`, the squares that count as reached.
      others: `[K, 8]` with K at least N - 1, sets to add to the squares reached at distance 1, 2, ...

    Returns:
      `[K, 8]`, the union of `others` and the squares reached at each distance. It is the result of a loop, which XLA
      does not recompute.
    """

    def further(front, more):
        return shift(front & empty, size, STEPS), (front & targets) | more

    return jax.lax.scan(further, shift(start, size, STEPS), others)[1]


def reach(start: Squares, empty: Squares, size: int) -> Squares:
    """Slides like `walk`; returns the squares reached at any distance, in the shape `[..., 8]` of `start`."""

    def further(carry, _):
        front, reached = carry
        front = shift(front & empty, size, STEPS)
        return (front, reached | front), None

    first = shift(start, size, STEPS)
    return jax.lax.scan(further, (first, first), length=size - 2)[0][1]
