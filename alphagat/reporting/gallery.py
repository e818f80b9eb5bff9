"""Arranges boards and their overlays in one SVG document, for notebooks."""

import hashlib
import html
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from alphagat.agents.analysis import Analysis
from alphagat.evaluation.live_game import LiveGame, line_names
from alphagat.games import svg
from alphagat.games.base import Game
from alphagat.reporting.overlays import attention_shapes, line_shapes, policy_shapes

GAP, LINE = 16.0, 19.0  # pixels between drawings, and per line of text
FADED = 0.35
ATTENTION = "#087f5b"
SIZE = re.compile(r' width="([\d.]+)" height="([\d.]+)"')


class Picture(NamedTuple):
    """A drawing with its caption and overlay.

    Attributes:
      drawing: an SVG document, such as that of `Game.render_svg`.
      caption: one or more lines of text below the drawing.
      over: SVG shapes drawn over the drawing, in its coordinates.
      faded: draws the board pale, but not these shapes.
    """

    drawing: str
    caption: str
    over: Sequence[str] = ()
    faded: bool = False


def gallery(pictures: Sequence[Picture], columns: int, width: float = 150.0) -> str:
    """Returns an SVG document of the pictures in rows of `columns`, each `width` pixels wide.

    A drawing shared by several pictures is stored once.
    """
    names = {each.drawing: "board-" + hashlib.sha256(each.drawing.encode()).hexdigest()[:12] for each in pictures}
    shapes = ["<defs>", *(f'<g id="{name}">{_inside(drawing)}</g>' for drawing, name in names.items()), "</defs>"]
    top = 0.0
    for start in range(0, len(pictures), columns):
        row = pictures[start : start + columns]
        sizes = [_size(each.drawing) for each in row]
        bottom = top + max(width * own_height / own_width for own_width, own_height in sizes)
        for column, (each, (own_width, own_height)) in enumerate(zip(row, sizes)):
            left, height = column * (width + GAP), width * own_height / own_width
            place = f'x="{left:.1f}" y="{bottom - height:.1f}" width="{width:.1f}" height="{height:.1f}"'
            use = f'<use href="#{names[each.drawing]}" opacity="{FADED if each.faded else 1}"/>'
            shapes += [f'<svg {place} viewBox="0 0 {own_width:g} {own_height:g}">{use}', *each.over, "</svg>"]
            for number, text in enumerate(each.caption.splitlines()):
                shapes.append(svg.label(left + width / 2, bottom + (number + 0.8) * LINE, html.escape(text)))
        top = bottom + max(len(each.caption.splitlines()) for each in row) * LINE + GAP
    return svg.document(min(columns, len(pictures)) * (width + GAP) - GAP, top, ["".join(shapes)])


def draw_game(game: Game, moves: Sequence[str], number: int = 6, columns: int = 6, width: float = 140.0) -> str:
    """Returns an SVG document of `number` equally spaced positions of a game, ending with the last."""
    shown = set(np.linspace(0, len(moves), number + 1).round().astype(int)[1:].tolist())
    played, pictures = LiveGame(game), []
    for ply, move in enumerate(moves, 1):
        played.play(move)
        if ply in shown:
            pictures.append(Picture(game.render_svg(played.position.state), f"{ply}. {move}"))
    return gallery(pictures, columns, width)


def draw_analysis(game: Game, state: Any, analysis: Analysis, width: float = 240.0) -> str:
    """Returns an SVG document of three boards: policy and value without search, with search, and the best line.

    Args:
      analysis: of `state`, without the axis `[B]`.
    """
    board, names = game.render_svg(state), line_names(game, state, analysis.variation)
    alone, searched = (policy_shapes(game, state, policy) for policy in (analysis.prior, analysis.policy))
    pictures = [
        Picture(board, f"network alone: value {float(analysis.network_value):+.2f}", alone),
        Picture(board, f"with search: value {float(analysis.value):+.2f}", searched),
        Picture(board, " ".join(["best line:", *names[:8]]), line_shapes(game, state, analysis.variation)),
    ]
    return gallery(pictures, len(pictures), width)


def attention_picture(game: Game, state: Any, weights: np.ndarray, caption: str, max_edges: int = 60) -> Picture:
    """Returns a pale board with the strongest of the attention weights `[E]` over it (`attention_shapes`)."""
    shapes = attention_shapes(game, state, weights, max_edges)
    return Picture(game.render_svg(state), caption, [f'<g fill="{ATTENTION}">', *shapes, "</g>"], faded=True)


def _size(drawing: str) -> tuple[float, float]:
    match = SIZE.search(drawing)
    assert match is not None, "a drawing must state its width and height"
    return float(match[1]), float(match[2])


def _inside(drawing: str) -> str:
    return drawing[drawing.index(">") + 1 :].removesuffix("</svg>").replace("\n", "")
