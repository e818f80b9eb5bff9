"""Go boards as SVG documents, with stones on intersections."""

from collections.abc import Sequence

import numpy as np

from alphagat.games import svg

WOOD, INK = "#e3b778", "#5c4326"
STONES = ("#212529", "#f8f9fa")  # of player 0 (Black) and player 1 (White)
RIMS = ("#000000", "#868e96")
LAST = svg.COLOURS[0]


def draw_intersections(
    stones: np.ndarray, last: tuple[int, int] | None, row_names: Sequence[str], column_names: Sequence[str]
) -> str:
    """Draws stones on lines.

    Args:
      stones: `[N, N]`, the player whose stone it is, or -1.
      last: row and column of the stone to mark, if any.
      row_names: `[N]`, written at the left.
      column_names: `[N]`, written below.
    """
    size = len(stones)
    first, end = svg.MARGIN + svg.CELL / 2, svg.MARGIN + (size - 0.5) * svg.CELL
    top = svg.CELL / 2 + 4

    def place(row: float, column: float) -> tuple[float, float]:
        return first + column * svg.CELL, top + row * svg.CELL

    shapes = [svg.rectangle(svg.MARGIN, 4, size * svg.CELL, size * svg.CELL, 8, WOOD)]
    for way in range(size):
        thickness = 2.0 if way in (0, size - 1) else 1.2
        shapes.append(svg.line((place(way, 0), place(way, size - 1)), thickness, INK))
        shapes.append(svg.line((place(0, way), place(size - 1, way)), thickness, INK))
    shapes += [svg.disc(*place(row, column), 4, INK) for row, column in star_points(size)]
    for row, column in np.argwhere(stones >= 0):
        player, (x, y) = stones[row, column], place(row, column)
        shapes.append(svg.disc(x, y, 0.46 * svg.CELL, RIMS[player]))
        shapes.append(svg.disc(x, y, 0.44 * svg.CELL, STONES[player]))
        if last == (row, column):
            shapes.append(svg.ring(x, y, 0.22 * svg.CELL, 3, LAST))
    shapes += [svg.label(svg.MARGIN / 2, place(row, 0)[1], name) for row, name in enumerate(row_names)]
    bottom = 4 + size * svg.CELL + svg.MARGIN / 2
    shapes += [svg.label(place(0, column)[0], bottom, name) for column, name in enumerate(column_names)]
    return svg.document(end + svg.CELL / 2 + 4, bottom + svg.MARGIN / 2, shapes)


def star_points(size: int) -> list[tuple[int, int]]:
    """Lists the star points: corners, sides from 13 lines on, and the centre of boards of odd size."""
    edge = 2 if size < 12 else 3
    lines = {edge, size - 1 - edge} if size >= 7 else set()
    points = {(row, column) for row in lines for column in lines}
    if size % 2:
        middle = size // 2
        points |= {(middle, middle)}
        points |= {place for line in lines if size >= 13 for place in ((line, middle), (middle, line))}
    return sorted(points)
