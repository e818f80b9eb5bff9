"""Chess boards as SVG documents: piece glyphs on light and dark squares."""

from collections.abc import Sequence

import numpy as np

from alphagat.games import svg

LIGHT, DARK = "#f1e3c8", "#b58863"
MARKED_LIGHT, MARKED_DARK = "#f6e27a", "#d8b23f"
GLYPHS = " ♟♞♝♜♛♚"  # pawn to king; both colours use filled glyphs and differ by fill and outline
FILLS, OUTLINES = ("#fdfdfb", "#26221f"), ("#26221f", "#000000")  # of White and Black


def draw_pieces(pieces: np.ndarray, marked: np.ndarray, row_names: Sequence[str], column_names: Sequence[str]) -> str:
    """Draws a position.

    Args:
      pieces: `[rows, columns]`, 0 empty, 1 pawn, 2 knight, 3 bishop, 4 rook, 5 queen, 6 king, negative for Black.
      marked: `[rows, columns]` bool, the squares to highlight.
      row_names: `[rows]`, written at the left.
      column_names: `[columns]`, written below.
    """
    rows, columns = pieces.shape
    shapes = [svg.rectangle(svg.MARGIN - 3, 1, columns * svg.CELL + 6, rows * svg.CELL + 6, 4, svg.PANEL)]
    for row, column in np.ndindex(rows, columns):
        x, y = svg.MARGIN + column * svg.CELL, 4 + row * svg.CELL
        is_dark = (rows - 1 - row + column) % 2 == 0  # a1 is dark
        colours = (MARKED_LIGHT, MARKED_DARK) if marked[row, column] else (LIGHT, DARK)
        shapes.append(svg.rectangle(x, y, svg.CELL, svg.CELL, 0, colours[is_dark]))
        if pieces[row, column]:
            shapes.append(_glyph(x + svg.CELL / 2, y + svg.CELL / 2, int(pieces[row, column])))
    shapes += [svg.label(svg.MARGIN / 2 - 2, 4 + (row + 0.5) * svg.CELL, name) for row, name in enumerate(row_names)]
    bottom = 4 + rows * svg.CELL + svg.MARGIN / 2 + 2
    places = [svg.MARGIN + (column + 0.5) * svg.CELL for column in range(columns)]
    shapes += [svg.label(x, bottom, name) for x, name in zip(places, column_names)]
    return svg.document(svg.MARGIN + columns * svg.CELL + 4, bottom + svg.MARGIN / 2, shapes)


def _glyph(x: float, y: float, piece: int) -> str:
    is_black = piece < 0
    place = f'x="{x:.1f}" y="{y:.1f}" dy=".35em" text-anchor="middle" font-size="{0.85 * svg.CELL:.0f}"'
    paint = f'fill="{FILLS[is_black]}" stroke="{OUTLINES[is_black]}" stroke-width="1" paint-order="stroke"'
    # The variation selector requests a text glyph; without it, some systems draw the pawn as an emoji.
    return f"<text {place} {paint}>{GLYPHS[abs(piece)]}\ufe0e</text>"
