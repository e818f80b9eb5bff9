"""Several drawings as one SVG document, which notebooks and the sites that show them take as one picture."""

import html
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from alphagat.games import svg
from alphagat.games.base import Game
from alphagat.reporting.overlays import draw_over, draw_policy, line_shapes
from alphagat.serving.analysis import Analysis
from alphagat.serving.live_game import LiveGame, line_names

GAP, LINE = 16.0, 19.0  # pixels between drawings, and of a line of text
SIZE = re.compile(r' width="([\d.]+)" height="([\d.]+)"')


class Picture(NamedTuple):
    """An SVG document and what stands below it, one or more lines."""

    drawing: str
    caption: str


def gallery(pictures: Sequence[Picture], columns: int, width: float = 150.0) -> str:
    """Returns one SVG document with the pictures, `columns` in a row, each `width` pixels wide."""
    shapes, top = [], 0.0
    for start in range(0, len(pictures), columns):
        row = pictures[start : start + columns]
        heights = [_height(each.drawing, width) for each in row]
        lines = max(len(each.caption.splitlines()) for each in row)
        for column, (each, height) in enumerate(zip(row, heights)):
            left = column * (width + GAP)
            place = f' x="{left:.1f}" y="{top + max(heights) - height:.1f}" width="{width:.1f}" height="{height:.1f}"'
            shapes.append(SIZE.sub(place, each.drawing, count=1))
            for number, text in enumerate(each.caption.splitlines()):
                middle = top + max(heights) + (number + 0.8) * LINE
                shapes.append(svg.label(left + width / 2, middle, html.escape(text)))
        top += max(heights) + lines * LINE + GAP
    return svg.document(min(columns, len(pictures)) * (width + GAP) - GAP, top, shapes)


def draw_game(game: Game, moves: Sequence[str], columns: int = 8, width: float = 130.0) -> str:
    """Returns one SVG document with the position after each of the moves, from the first one on."""
    played, pictures = LiveGame(game), []
    for number, move in enumerate(moves, 1):
        played.play(move)
        pictures.append(Picture(game.render_svg(played.position.state), f"{number}. {move}"))
    return gallery(pictures, columns, width)


def draw_analysis(game: Game, state: Any, found: Analysis, width: float = 240.0) -> str:
    """Returns one SVG document: the network's policy and value, those with search, and the best line, on the board.

    Args:
      found: of that one state, without `[B]`.
    """
    line = draw_over(game.render_svg(state), line_shapes(game, state, found.variation))
    names = line_names(game, state, found.variation)
    pictures = [
        Picture(draw_policy(game, state, found.prior), f"network alone: value {float(found.network_value):+.2f}"),
        Picture(draw_policy(game, state, found.policy), f"with search: value {float(found.value):+.2f}"),
        Picture(line, " ".join(["best line:", *names[:8]])),
    ]
    return gallery(pictures, len(pictures), width)


def _height(drawing: str, width: float) -> float:
    """Returns how high a drawing becomes when it is that wide."""
    found = SIZE.search(drawing)
    assert found is not None
    own_width, own_height = map(float, found.groups())
    return width * own_height / own_width
