"""Connect Four and other upright boards as SVG documents, with discs in holes."""

from collections.abc import Sequence

import numpy as np

from alphagat.games import svg
from alphagat.games.places import CELL, MARGIN, grid_places


def disc_places(rows: int, columns: int) -> np.ndarray:
    """Places the holes of `draw_discs`, row by row."""
    return grid_places(rows, columns, left=6, top=6)


def draw_discs(stones: np.ndarray, marked: np.ndarray, column_names: Sequence[str]) -> str:
    """Draws discs in the holes of an upright board; takes the arguments of `draw_tiles`."""
    rows, columns = stones.shape
    shapes = [svg.rectangle(2, 2, columns * CELL + 8, rows * CELL + 8, 12, svg.PANEL)]
    for (row, column), (x, y) in zip(np.ndindex(rows, columns), disc_places(rows, columns)[:, :2].tolist()):
        player = stones[row, column]
        shapes.append(svg.disc(x, y, 0.42 * CELL, svg.COLOURS[player] if player >= 0 else svg.TILE))
        if marked[row, column]:
            shapes.append(svg.ring(x, y, 0.22 * CELL, 0.09 * CELL, svg.TILE))
    bottom = 10 + rows * CELL + MARGIN / 2
    shapes += [svg.label(6 + (column + 0.5) * CELL, bottom, name) for column, name in enumerate(column_names)]
    return svg.document(columns * CELL + 12, bottom + MARGIN / 2, shapes)
