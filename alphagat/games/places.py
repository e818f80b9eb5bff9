"""Pixel positions of nodes in drawings: `[N, 4]` float64 of centre x, centre y, width and height."""

import numpy as np

CELL = 40.0  # pixels between the centres of neighbouring cells
MARGIN = 28.0  # pixels around a board, for its labels


def nowhere(number: int) -> np.ndarray:
    """Returns NaN places, for nodes that are not drawn."""
    return np.full((number, 4), np.nan)


def grid_places(
    rows: int, columns: int, *, left: float = MARGIN, top: float = 4.0, cell: float = CELL, gap: float = 0.0
) -> np.ndarray:
    """Places squares of side `cell - gap`, row by row, with centres `cell` pixels apart.

    The top left corner of the first square is at (`left`, `top`) if `gap` is 0.
    """
    row, column = np.divmod(np.arange(rows * columns), columns)
    side = np.full(rows * columns, cell - gap)
    return np.stack([left + (column + 0.5) * cell, top + (row + 0.5) * cell, side, side], axis=-1)


def turned_places(size: int, player: int) -> np.ndarray:
    """Places squares whose rows are numbered from the far side of the player; player 0 sits at the bottom."""
    squares = grid_places(size, size)
    return squares.reshape(size, size, 4)[::-1].reshape(-1, 4) if player else squares
