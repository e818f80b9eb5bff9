"""In how many openings of one stone a player names the winner of Hex: `python benchmarks/hex_openings.py --source hex`.

For each size, of the network alone, and of searches with more and more simulations; and the cells where it is wrong. Up
to 5x5 the exact solver knows who wins, on 7x7 the literature.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from alphagat import load, sharding
from alphagat.evaluation.openings import openings_after
from alphagat.evaluation.oracles import score_positions
from alphagat.games.base import Game
from alphagat.training.agent import Agent

# Openings on 7x7 that win for the first player, who joins top and bottom (Hayward et al., Solving 7x7 Hex with
# domination, fill-in, and virtual connections, 2005).
WINNING_7X7 = "g1 c2 e2 f2 g2 b3 c3 d3 e3 f3 a4 b4 c4 d4 e4 f4 g4 b5 c5 d5 e5 f5 a6 b6 c6 e6 a7"


def winning_openings(game: Game) -> np.ndarray:
    """Returns `[N]` bool, by action. Raises UserError where nobody knows."""
    if game.name == "hex:7":
        return np.isin(game.action_names, WINNING_7X7.split())
    openings = openings_after(game, 1, seed=0)
    loses = score_positions(game, openings.states).max(axis=1) > 0  # whoever moves next wins
    return ~loses[np.argsort(openings.actions[:, 0])]


def values_of_openings(agent: Agent, simulations: int) -> np.ndarray:
    """Returns `[N]`, what each opening is worth for the first player, by action; 0 simulations: the network alone."""
    openings = openings_after(agent.game, 1, seed=0)
    states = jax.tree.map(lambda x: x[np.argsort(openings.actions[:, 0])], openings.states)
    if not simulations:
        return -np.asarray(agent.evaluator(agent.params, states).value)
    plies = jnp.ones(agent.game.num_actions, jnp.int32)
    return -np.asarray(jax.jit(agent.search(simulations))(agent.params, jax.random.key(0), states, plies).value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="hex", help="as in alphagat.load (default: %(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[4, 5, 7], help="default: %(default)s")
    parser.add_argument("--simulations", type=int, nargs="+", default=[0, 64, 256, 1024], help="default: %(default)s")
    options = parser.parse_args()
    sharding.configure_cpu_devices(1)
    table = Table("board", "simulations", "named rightly", "wrong", title=f"{options.source}: openings of one stone")
    for size in options.sizes:
        agent = load(options.source, board=f"hex:{size}")
        wins = winning_openings(agent.game)
        for simulations in options.simulations:
            is_right = (values_of_openings(agent, simulations) > 0) == wins
            wrong = " ".join(np.array(agent.game.action_names)[~is_right])
            table.add_row(agent.game.name, str(simulations), f"{is_right.sum()} of {len(wins)}", wrong)
    Console(soft_wrap=True).print(table)


if __name__ == "__main__":
    main()
