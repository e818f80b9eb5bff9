"""Hex boards as SVG documents: a rhombus of hexagons."""

import math
from collections.abc import Sequence

import numpy as np

from alphagat.games import svg
from alphagat.games.places import CELL, MARGIN


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


def draw_hexagons(stones: np.ndarray, marked: np.ndarray, row_names: Sequence[str], column_names: Sequence[str]) -> str:
    """Draws a rhombus of hexagons. The top and bottom borders are player 0's, the left and right ones player 1's.

    Args:
      stones: `[N, N]`, the player whose stone it is, or -1.
      marked: `[N, N]` bool, the stones to highlight.
      row_names: `[N]`, written at the left.
      column_names: `[N]`, written above.
    """
    size, side = len(stones), CELL / math.sqrt(3)

    def corners(row: int, column: int, scale: float = 1.0) -> list[tuple[float, float]]:  # clockwise from the top
        x, y = hexagon_middle(row, column)
        steps = ((0, -1), (1, -0.5), (1, 0.5), (0, 1), (-1, 0.5), (-1, -0.5))
        return [(x + scale * CELL / 2 * right, y + scale * side * down) for right, down in steps]

    shapes = _hexagon_borders(size, corners)
    for row, column in np.ndindex(size, size):
        shapes.append(svg.polygon(corners(row, column), svg.PANEL))
        shapes.append(svg.polygon(corners(row, column, 0.94), svg.TILE))
        if stones[row, column] >= 0:
            shapes.append(svg.polygon(corners(row, column, 0.8), svg.COLOURS[stones[row, column]]))
        if marked[row, column]:
            shapes.append(svg.disc(*hexagon_middle(row, column), 0.14 * CELL, svg.TILE))
    shapes += [svg.label(*hexagon_middle(-1.15, column), name) for column, name in enumerate(column_names)]
    shapes += [svg.label(*hexagon_middle(row, -0.95), name) for row, name in enumerate(row_names)]
    right, bottom = hexagon_middle(size - 1, size - 1)
    return svg.document(right + CELL / 2 + 10, bottom + side + 10, shapes)


def _hexagon_borders(size: int, corners) -> list[str]:
    """Draws the four borders; at each blunt corner, two borders share one edge equally."""
    last = size - 1
    blunt = [_halfway(*corners(0, last)[:2]), _halfway(*corners(last, 0)[3:5])]
    top = [point for column in range(size) for point in (corners(0, column)[5], corners(0, column)[0])]
    right = [point for row in range(size) for point in corners(row, last)[1:3]]
    bottom = [point for column in range(size) for point in (corners(last, column)[4], corners(last, column)[3])]
    left = [point for row in range(size) for point in (corners(row, 0)[5], corners(row, 0)[4])]
    bottom = [blunt[1], *bottom[1:], corners(last, last)[2]]
    borders = ([*top, blunt[0]], bottom, [*left, blunt[1]], [blunt[0], *right])
    return [svg.line(points, 11, svg.COLOURS[border // 2], "butt") for border, points in enumerate(borders)]


def _halfway(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return (one[0] + other[0]) / 2, (one[1] + other[1]) / 2
