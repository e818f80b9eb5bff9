"""Boards as SVG documents, in flat shapes and mid-tones that are readable on light and dark pages."""

from collections.abc import Callable, Sequence

import numpy as np

from alphagat.games.places import CELL, MARGIN, grid_places

COLOURS = ("#e8590c", "#1c7ed6")  # of player 0 and player 1
PANEL, TILE, MARKED_TILE, LABEL = "#ced4da", "#f8f9fa", "#ffe066", "#868e96"


def column_letters(columns: int) -> tuple[str, ...]:
    """Returns the letters of up to 26 columns, from a."""
    return tuple("abcdefghijklmnopqrstuvwxyz"[:columns])


def document(width: float, height: float, shapes: Sequence[str]) -> str:
    """Wraps shapes into an SVG document; its size is in pixels."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="system-ui, sans-serif" font-size="14">'
    )
    return "\n".join((head, *shapes, "</svg>"))


def label(x: float, y: float, text: str) -> str:
    """Writes centred text."""
    place = f'x="{x:.1f}" y="{y:.1f}" dy=".35em" text-anchor="middle"'
    return f'<text {place} fill="{LABEL}">{text}</text>'


def bold_label(x: float, y: float, text: str, size: float) -> str:
    """Writes centred text, bold and white, for dark shapes."""
    place = f'x="{x:.1f}" y="{y:.1f}" dy=".36em" text-anchor="middle"'
    return f'<text {place} font-size="{size:.1f}" font-weight="600" fill="#ffffff">{text}</text>'


def rectangle(x: float, y: float, width: float, height: float, radius: float, colour: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} rx="{radius:.1f}" fill="{colour}"/>'


def disc(x: float, y: float, radius: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}"/>'


def ring(x: float, y: float, radius: float, thickness: float, colour: str) -> str:
    stroke = f'fill="none" stroke="{colour}" stroke-width="{thickness:.1f}"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {stroke}/>'


def line(points: Sequence[tuple[float, float]], thickness: float, colour: str, cap: str = "round") -> str:
    """Draws straight lines from point to point."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    stroke = f'stroke="{colour}" stroke-width="{thickness:.1f}" stroke-linecap="{cap}" stroke-linejoin="round"'
    return f'<polyline points="{path}" fill="none" {stroke}/>'


def polygon(points: Sequence[tuple[float, float]], colour: str) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polygon points="{path}" fill="{colour}"/>'


def cross_or_ring(x: float, y: float, player: int) -> str:
    """Draws a cross for player 0 and a circle for player 1, as on paper."""
    arm, thickness, colour = 0.2 * CELL, 0.11 * CELL, COLOURS[player]
    if player == 1:
        return ring(x, y, 0.23 * CELL, thickness, colour)
    strokes = [((x - arm, y - way * arm), (x + arm, y + way * arm)) for way in (1, -1)]
    return "".join(line(stroke, thickness, colour) for stroke in strokes)


def pawn(x: float, y: float, player: int) -> str:
    """Draws a disc with an arrow in the player's forward direction: up for player 0, down for player 1."""
    ahead, arm = (-1, 1)[player], 0.14 * CELL
    arrow = [(x - arm, y - 0.45 * ahead * arm), (x, y + 0.55 * ahead * arm), (x + arm, y - 0.45 * ahead * arm)]
    return disc(x, y, 0.35 * CELL, COLOURS[player]) + line(arrow, 0.08 * CELL, TILE)


def draw_tiles(
    stones: np.ndarray,
    marked: np.ndarray,
    row_names: Sequence[str],
    column_names: Sequence[str],
    draw_stone: Callable[[float, float, int], str] = cross_or_ring,
) -> str:
    """Draws stones on square tiles.

    Args:
      stones: `[rows, columns]`, the player whose stone it is, or -1.
      marked: `[rows, columns]` bool, the tiles to highlight.
      row_names: `[rows]`, written at the left.
      column_names: `[columns]`, written below.
      draw_stone: draws a player's stone around the centre (x, y) of a tile.
    """
    rows, columns = stones.shape
    shapes = [rectangle(MARGIN - 2, 2, columns * CELL + 4, rows * CELL + 4, 8, PANEL)]
    for (row, column), (x, y) in zip(np.ndindex(rows, columns), grid_places(rows, columns)[:, :2].tolist()):
        colour = MARKED_TILE if marked[row, column] else TILE
        shapes.append(rectangle(x - CELL / 2 + 1.5, y - CELL / 2 + 1.5, CELL - 3, CELL - 3, 5, colour))
        if stones[row, column] >= 0:
            shapes.append(draw_stone(x, y, int(stones[row, column])))
    shapes += [label(MARGIN / 2 - 2, 4 + (row + 0.5) * CELL, name) for row, name in enumerate(row_names)]
    bottom = 4 + rows * CELL + MARGIN / 2 + 2
    shapes += [label(MARGIN + (column + 0.5) * CELL, bottom, name) for column, name in enumerate(column_names)]
    return document(MARGIN + columns * CELL + 4, bottom + MARGIN / 2, shapes)
