"""Draws a game of a network against itself with its attention, as one animated SVG: `python docs/draw_game.py`."""

import argparse
from pathlib import Path

import jax
import numpy as np

from alphagat import load
from alphagat.agents.agent import Agent
from alphagat.agents.attention import make_attention
from alphagat.reporting.overlays import attention_shapes
from alphagat.reporting.samples import Moment, play_samples
from alphagat.runtime import sharding

SECONDS, LAST_SECONDS = 0.8, 4.0  # of each position, and of the last
MAX_EDGES = 40
ATTENTION = "#343a40"


def frame(agent: Agent, moment: Moment, block: int) -> tuple[list[str], str]:
    """Returns the shapes of the board, and the attention of all heads of a block (none after the end of the game)."""
    board = agent.game.render_svg(moment.state).split("\n")[1:-1]
    if moment.state.terminated:
        return board, ""
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], moment.state)
    weights = np.asarray(make_attention(agent)(agent.params, states))[0, block].mean(axis=0)
    topology = agent.game.topology
    weights = np.where(topology.senders == topology.receivers, 0, weights)
    return board, "".join(attention_shapes(agent.game, moment.state, weights, MAX_EDGES))


def animate(agent: Agent, moments: list[Moment], block: int) -> str:
    """Returns the document. Shapes that all positions share are drawn once; without animation it shows the middle."""
    frames = [frame(agent, moment, block) for moment in moments]
    shared = [shape for shape in frames[0][0] if all(shape in board for board, _ in frames)]
    total = SECONDS * (len(frames) - 1) + LAST_SECONDS
    shapes = list(shared)
    for number, (board, attention) in enumerate(frames):
        shapes.append(f'<g visibility="{"visible" if number == len(frames) // 2 else "hidden"}">')
        end = 1.0 if number == len(frames) - 1 else SECONDS * (number + 1) / total
        shapes.append(_shown(SECONDS * number / total, end, total))
        shapes += [shape for shape in board if shape not in shared]
        shapes += [f'<g fill="{ATTENTION}">{attention}</g></g>' if attention else "</g>"]
    head, tail = agent.game.render_svg(moments[0].state).split("\n")[0], "</svg>"
    return "\n".join((head, *shapes, tail)) + "\n"


def _shown(begin: float, end: float, total: float) -> str:
    """Returns the animation of a frame that is visible between two shares of the total time."""
    changes = {0.0: "hidden", begin: "visible", end: "hidden"}
    steps = {time: changes[time] for time in sorted(changes) if time < 1}
    values, times = ";".join(steps.values()), ";".join(f"{time:.4f}" for time in steps)
    timing = f'calcMode="discrete" dur="{total:.1f}s" repeatCount="indefinite"'
    return f'<animate attributeName="visibility" values="{values}" keyTimes="{times}" {timing}/>'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", default="shipped", help="as in alphagat.load (default: %(default)s)")
    parser.add_argument("--board", default="hex:7", help="default: %(default)s")
    parser.add_argument("--block", type=int, default=-1, help="the block whose attention is drawn (default: the last)")
    parser.add_argument("--seed", type=int, default=0, help="of the opening (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("docs/game.svg"), help="default: %(default)s")
    options = parser.parse_args()
    sharding.configure_cpu_devices(1)
    agent = load(options.source, board=options.board)
    (game,) = play_samples(agent, 1, options.seed)
    options.out.write_text(animate(agent, game.moments, options.block))


if __name__ == "__main__":
    main()
