"""Tiles with powers of two as SVG: pale yellow to red up to 128, then pinks, violets, blues and greens."""

import numpy as np

from alphagat.games.places import grid_places
from alphagat.games.svg import document, rectangle

PANEL, EMPTY = "#adb5bd", "#ced4da"
DARK_INK, LIGHT_INK = "#5c3d0e", "#ffffff"
# (tile, text) colours of 2, 4, 8 and so on; larger tiles use the last pair
COLOURS = (
    ("#fff9db", DARK_INK),
    ("#ffec99", DARK_INK),
    ("#ffc078", DARK_INK),
    ("#ff922b", DARK_INK),
    ("#f76707", LIGHT_INK),
    ("#fa5252", LIGHT_INK),
    ("#e03131", LIGHT_INK),
    ("#e64980", LIGHT_INK),
    ("#c2255c", LIGHT_INK),
    ("#ae3ec9", LIGHT_INK),
    ("#862e9c", LIGHT_INK),
    ("#6741d9", LIGHT_INK),
    ("#4263eb", LIGHT_INK),
    ("#1971c2", LIGHT_INK),
    ("#0c8599", LIGHT_INK),
    ("#099268", LIGHT_INK),
    ("#2b8a3e", LIGHT_INK),
)
PITCH, GAP, DIGIT_WIDTH = 60.0, 6.0, 0.74  # tile distance and gap in pixels; digit width per font size
LARGEST_FONT, MOST_DIGITS = 25.0, 6
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def tile_places(size: int) -> np.ndarray:
    """Places the cells of a square board, row by row, then the direction nodes left, above, right and below."""
    cells = grid_places(size, size, left=GAP / 2, top=GAP / 2, cell=PITCH, gap=GAP)
    end, side = size * PITCH + GAP, PITCH / 2
    middle, out = end / 2, side / 2 + GAP
    sides = [(-out, middle, side, end), (middle, -out, end, side), (end + out, middle, side, end)]
    return np.concatenate([cells, [*sides, (middle, end + out, end, side)]])


def draw_powers_of_two(exponents: np.ndarray) -> str:
    """Draws `[rows, columns]` tiles: k for the tile 2^k, 0 for an empty cell."""
    rows, columns = exponents.shape
    width, height = columns * PITCH + GAP, rows * PITCH + GAP
    shapes = [rectangle(0, 0, width, height, 10, PANEL)]
    for row, column in np.ndindex(rows, columns):
        x, y, exponent = GAP + column * PITCH, GAP + row * PITCH, int(exponents[row, column])
        tile, ink = COLOURS[min(exponent, len(COLOURS)) - 1] if exponent else (EMPTY, EMPTY)
        shapes.append(rectangle(x, y, PITCH - GAP, PITCH - GAP, 6, tile))
        if exponent:
            shapes.append(_number(x + (PITCH - GAP) / 2, y + (PITCH - GAP) / 2, exponent, ink))
    return document(width, height, shapes)


def _number(x: float, y: float, exponent: int, colour: str) -> str:
    """Writes 2^k at the centre (x, y) of a tile, as large as fits, or as a power if it is too long."""
    text = str(2**exponent)
    if len(text) > MOST_DIGITS:
        text = "2" + str(exponent).translate(SUPERSCRIPTS)
    size = min(LARGEST_FONT, (PITCH - 2 * GAP) / (DIGIT_WIDTH * len(text)))
    place = f'x="{x:.1f}" y="{y:.1f}" dy=".35em" text-anchor="middle" font-size="{size:.1f}" font-weight="700"'
    return f'<text {place} fill="{colour}">{text}</text>'
