"""Compares the players of a run with perfect play: `python benchmarks/oracle.py --workdir DIR --iterations 100 200`.

Prints, for each checkpoint, the share of random positions in which the network alone, and with a search, chooses a best
move according to an exact solver (in Connect Four, the fastest win or the slowest loss) or at least keeps the result,
and the share in which the sign of its value is correct (drawn positions excluded).
Shares are given in total and by stage (thirds of the range of plies, 12 to 34 in Connect Four). On boards small enough
for a table (tic_tac_toe, hex up to 3x3) it also counts losing moves in all reachable positions that are not lost.
"""

import argparse

import jax
from rich.console import Console
from rich.table import Table

from alphagat import load
from alphagat.errors import UserError
from alphagat.evaluation.oracles import STAGES, OracleTest, count_losing_moves, make_oracle
from alphagat.runtime import sharding

MEASURES = {
    "network": "best_move",
    "search": "best_move_search",
    "network keeps the result": "keeps_result",
    "search keeps the result": "keeps_result_search",
    "value": "value_sign",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workdir", required=True)
    parser.add_argument("--board", help="any of the family of the run's boards (default: the run's first)")
    parser.add_argument("--iterations", type=int, nargs="*", help="checkpoints (default: the latest)")
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--positions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the positions")
    options = parser.parse_args()
    sharding.configure_cpu_devices(1)
    console = Console(soft_wrap=True)
    agents = [load(options.workdir, iteration, options.board) for iteration in options.iterations or [None]]
    game = agents[0].game
    oracle = make_oracle(game, options.positions, options.seed)
    title = f"{game.name}, {options.positions} positions, seed {options.seed}, {options.simulations} simulations"
    table = Table("iteration", "of", "all", *STAGES, title=title)
    for agent in agents:
        test = OracleTest(oracle, agent.evaluator, agent.search(options.simulations))
        shares = test.measure(agent.params, jax.random.key(options.seed))
        for name, measure in MEASURES.items():
            cells = [shares.get(measure + stage) for stage in ("", *(f"_{stage}" for stage in STAGES))]
            table.add_row(str(agent.iteration), name, *("" if cell is None else f"{cell:.3f}" for cell in cells))
    console.print(table)
    player = agents[-1].player(options.simulations)
    try:
        positions, blunders = count_losing_moves(game, player, jax.random.key(0))
    except UserError:
        return  # no table
    console.print(f"{game.name}, {player.name}: {blunders} losing moves in {positions} positions not lost")


if __name__ == "__main__":
    main()
