"""Counts the one-ply openings whose winner a player predicts: `python benchmarks/openings.py --source hex`.

Prints, for each board, the count for the network alone and for increasing numbers of simulations, and the openings that
it gets wrong. The correct winners come from an exact solver, or from the literature for Hex 7x7. Only a value of 0
predicts a draw.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from alphagat import load
from alphagat.agents.agent import Agent
from alphagat.agents.analysis import no_search
from alphagat.evaluation.openings import Openings, openings_after
from alphagat.evaluation.oracles import score_positions
from alphagat.games.base import Game
from alphagat.runtime import sharding

# Openings on 7x7 that win for the first player, who connects top and bottom (Hayward et al., Solving 7x7 Hex with
# domination, fill-in, and virtual connections, 2005).
WINNING_7X7 = "g1 c2 e2 f2 g2 b3 c3 d3 e3 f3 a4 b4 c4 d4 e4 f4 g4 b5 c5 d5 e5 f5 a6 b6 c6 e6 a7"


def exact_signs(game: Game, openings: Openings) -> np.ndarray:
    """Returns `[N]`, 1 for openings that win for the first player, -1 for those that lose, 0 for draws.

    Raises:
      UserError: the winners are not known.
    """
    if game.name == "hex:7":
        names = np.array(game.action_names)[openings.actions[:, 0]]
        return np.where(np.isin(names, WINNING_7X7.split()), 1, -1)
    return -np.sign(score_positions(game, openings.states).max(axis=1))


def values_of(agent: Agent, openings: Openings, simulations: int) -> np.ndarray:
    """Returns `[N]`, the value of each opening for the first player; 0 simulations: the network alone."""
    search = agent.search(simulations) if simulations else no_search(agent.evaluator)
    plies = jnp.ones(len(openings.actions), jnp.int32)
    return -np.asarray(jax.jit(search)(agent.params, jax.random.key(0), openings.states, plies).value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="hex", help="as in alphagat.load (default: %(default)s)")
    parser.add_argument("--boards", nargs="+", default=["hex:4", "hex:5", "hex:7"], help="default: %(default)s")
    parser.add_argument("--simulations", type=int, nargs="+", default=[0, 64, 256, 1024], help="default: %(default)s")
    parser.add_argument("--symmetries", type=int, default=1, help="that evaluations average (default: %(default)s)")
    options = parser.parse_args()
    sharding.configure_cpu_devices(1)
    table = Table("board", "simulations", "right", "wrong", title=f"{options.source}: openings of one ply")
    for board in options.boards:
        agent = load(options.source, board=board, symmetries=options.symmetries)
        openings = openings_after(agent.game, 1, seed=0)
        names = np.array(agent.game.action_names)[openings.actions[:, 0]]
        exact = exact_signs(agent.game, openings)
        for simulations in options.simulations:
            is_right = np.sign(values_of(agent, openings, simulations)) == exact
            table.add_row(board, str(simulations), f"{is_right.sum()} of {len(exact)}", " ".join(names[~is_right]))
    Console(soft_wrap=True).print(table)


if __name__ == "__main__":
    main()
