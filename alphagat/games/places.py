"""Pixel positions of nodes in drawings: `[N, 4]` float64 of centre x, centre y, width and height."""

import math

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


def hexagon_middle(row: float, column: float) -> tuple[float, float]:
    """Returns x and y of a cell in a rhombus of hexagons; each row is shifted half a cell to the right."""
    return MARGIN + (column + row / 2 + 0.75) * CELL, MARGIN + (1.5 * row + 1) * CELL / math.sqrt(3)


def hexagon_places(size: int) -> np.ndarray:
    """Places the cells of a rhombus of hexagons, row by row, then its borders: top, bottom, left and right."""
    cells = [hexagon_middle(row, column) for row, column in np.ndindex(size, size)]
    middle, last = (size - 1) / 2, size - 1
    borders = [(-0.62, middle + 0.31), (last + 0.62, middle - 0.31), (middle, -0.62), (middle, last + 0.62)]
    middles = np.array(cells + [hexagon_middle(*border) for border in borders])
    sides = np.repeat([0.92 * CELL, 0.3 * CELL], [len(cells), len(borders)])
    return np.column_stack([middles, sides, sides])
