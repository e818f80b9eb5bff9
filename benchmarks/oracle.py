"""How a run's player compares with perfect play: `python benchmarks/oracle.py --workdir DIR`.

tic_tac_toe and hex up to 3x3: every reachable position that is not lost, and the moves there that lose. connect_four:
the share of moves that an exact solver (`bitbully`) calls best, on positions after 12 to 34 uniformly random plies.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from alphagat import load
from alphagat.evaluation.connect_four import connect_four_scores, share_of_optimal_moves
from alphagat.evaluation.openings import random_positions
from alphagat.evaluation.solvers import count_losing_moves
from alphagat.training.agent import Agent


def raw_actions(agent: Agent, states) -> np.ndarray:
    """Returns the legal action of the highest prior, without search."""
    prior_logits = jax.jit(agent.evaluator)(agent.params, states).prior_logits
    return np.asarray(jnp.where(states.legal_action_mask, prior_logits, -jnp.inf).argmax(-1))


def connect_four_table(
    workdir: str, iterations: list[int | None], simulations: int, positions: int, seed: int
) -> Table:
    """Returns the shares of right moves by checkpoint."""
    table = Table("iteration", "player", "best move", "value kept", title=f"{positions} positions, seed {seed}")
    agent = load(workdir, iterations[0])
    states = random_positions(agent.game, positions, 12, 34, seed)
    scores = connect_four_scores(states)
    for iteration in iterations:
        agent = load(workdir, iteration)
        act = jax.jit(agent.player(simulations).act)
        for name, actions in (
            ("raw policy", raw_actions(agent, states)),
            (f"{simulations} simulations", act(agent.params, jax.random.key(0), states)),
        ):
            shares = share_of_optimal_moves(np.asarray(actions), scores)
            table.add_row(str(agent.iteration), name, f"{shares.optimal:.3f}", f"{shares.value_preserving:.3f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workdir", required=True)
    parser.add_argument("--iterations", type=int, nargs="*", help="checkpoints (default: the latest)")
    parser.add_argument("--simulations", type=int, help="default: 64 on connect_four, else 32")
    parser.add_argument("--positions", type=int, default=2000, help="connect_four only")
    parser.add_argument("--seed", type=int, default=0, help="of the positions")
    options = parser.parse_args()
    agent = load(options.workdir)
    if agent.game.name == "connect_four":
        iterations = options.iterations or [None]
        simulations = options.simulations or 64
        table = connect_four_table(options.workdir, iterations, simulations, options.positions, options.seed)
        Console().print(table)
        return
    player = agent.player(options.simulations or 32)
    positions, blunders = count_losing_moves(agent.game, player, jax.random.key(0))
    Console(soft_wrap=True).print(
        f"{agent.game.name}, {player.name}: {blunders} losing moves in {positions} positions not lost"
    )


if __name__ == "__main__":
    main()
