"""Overlays for a board drawing as SVG shapes: policy, variation and attention."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from alphagat.evaluation.live_game import LiveGame
from alphagat.games import svg
from alphagat.games.base import Game
from alphagat.games.places import MARGIN

POLICY = "#7048e8"
LEAST_SHARE = 0.005  # smaller shares are not drawn


def policy_shapes(game: Game, state: Any, policy: np.ndarray) -> list[str]:
    """Draws a policy `[A]` as discs at the places of the moves, with area proportional to probability.

    A disc shows its percentage if it fits.

    Of several moves to the same place, only the most likely is drawn.
    """
    places, shapes, most = game.action_places(state), {}, float(np.max(policy))
    for action in np.argsort(policy, kind="stable"):
        (x, y, width, height), share = places[action].tolist(), float(policy[action])
        if share < LEAST_SHARE or np.isnan(x):
            continue
        size = 0.42 * min(width, height) * max(share / most, 0.06) ** 0.5
        opacity = 0.3 + 0.6 * (share / most) ** 0.5
        disc = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" fill="{POLICY}" opacity="{opacity:.2f}"/>'
        percentage = svg.bold_label(x, y, f"{100 * share:.0f}", min(12.0, 0.9 * size)) if size > 8.5 else ""
        shapes[x, y] = disc + percentage
    return list(shapes.values())


def line_shapes(game: Game, state: Any, actions: Sequence[int]) -> list[str]:
    """Draws the variation `actions`, padded with -1, from `state`: numbered discs in the colours of the players."""
    line, shapes = LiveGame(game, state), {}
    for number, action in enumerate(actions, 1):
        if action < 0 or line.is_over:
            break
        now = line.position
        x, y, width, height = game.action_places(now.state)[action].tolist()
        if not np.isnan(x):
            size = 0.28 * min(width, height)
            disc = svg.disc(x, y, size, game.player_colours[now.player][1])
            opacity = max(0.35, 1 - 0.09 * (number - 1))
            label = svg.bold_label(x, y, str(number), 1.1 * size)
            shapes.setdefault((x, y), f'<g opacity="{opacity:.2f}">{disc}{label}</g>')
        line.play_action(int(action))
    return list(shapes.values())[::-1]


def attention_shapes(game: Game, state: Any, weights: np.ndarray, max_edges: int) -> list[str]:
    """Draws the `max_edges` strongest edges, the weakest first. The shapes inherit the fill of their parent.

    A wedge points from the attending node (receiver) to the attended node (sender). A disc is a node's attention to
    itself.

    Args:
      weights: `[E]` attention weights of a head, or their mean over heads; edges of weight 0 are not drawn.
    """
    places, topology = game.node_places(state), game.topology
    kinds = np.array(topology.vocabulary.node_kinds)[topology.node_kinds]
    columns = kinds == "column"  # attention to a column is drawn at its label below the board
    places[columns, 1] += (places[columns, 3] - MARGIN) / 2
    shown = ~np.isnan(places[topology.senders, 0]) & ~np.isnan(places[topology.receivers, 0])
    edges = np.flatnonzero(shown & (weights > 0))
    edges = edges[np.argsort(weights[edges], kind="stable")][-max_edges:]
    size, strongest = np.nanmedian(places[:, 2:]), weights[edges].max(initial=1e-9)
    shapes = []
    for edge in edges:
        share = (weights[edge] / strongest) ** 0.5  # the area of a disc is proportional to the weight
        start, tip = places[topology.receivers[edge], :2], places[topology.senders[edge], :2]
        if topology.senders[edge] == topology.receivers[edge]:
            radius = 0.2 * size * share
            shapes.append(f'<circle cx="{tip[0]:.1f}" cy="{tip[1]:.1f}" r="{radius:.1f}" opacity=".8"/>')
            continue
        along = (tip - start) / max(float(np.hypot(*(tip - start))), 1e-9)
        side = np.array([-along[1], along[0]]) * 0.13 * size * share
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (start + side, start - side, tip))
        shapes.append(f'<polygon points="{points}" opacity="{0.1 + 0.8 * share**2:.2f}"/>')
    return shapes
