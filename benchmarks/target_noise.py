"""Compares the value targets of self-play with exact values, for several lambdas, on a solved board.

    python benchmarks/target_noise.py --source runs/connect_four

The network plays one game from each opening, with the search and the exploration of its run. A target is right if it
has the sign of the exact value; drawn positions are left out. Each row of the table is a range of plies. Its last
columns show the search: how often its value has the right sign, and how often the move it played keeps the result.

The outcome (lambda 1) is also that of every later mistake and random move. The search value (lambda 0) repeats the
errors of the network.
"""

import argparse

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from alphagat import load
from alphagat.agents.agent import Agent
from alphagat.agents.build import make_configured_search
from alphagat.evaluation.oracles import score_positions
from alphagat.games.batches import take
from alphagat.runtime import sharding
from alphagat.selfplay.games_in_flight import make_play, start_games
from alphagat.selfplay.ply import Ply
from alphagat.selfplay.targets import value_targets


def play_games(agent: Agent, num_games: int, seed: int) -> Ply:
    """Returns the plies of one game per opening, `[T, N]` before each shape; those of further games have length 0."""
    game, config = agent.game, agent.config
    longest, openings = game.max_plies, config.selfplay.opening_plies
    simulations = config.search.num_simulations
    search = make_configured_search(game, agent.evaluator, config, explore=True, num_simulations=simulations)
    play = make_play(
        game,
        search,
        num_plies=longest,
        max_plies=longest,
        opening_plies=openings,
        discount=config.search.discount,
    )
    start_key, play_key = jax.random.split(jax.random.key(seed))
    games = start_games(game, start_key, num_games=num_games, num_waiting=1, opening_plies=openings)
    _, history = jax.jit(play)(agent.params, play_key, games)
    history = jax.tree.map(lambda leaf: leaf[1:], history)  # without the placeholder
    earlier = np.cumsum(history.ended, axis=0) - history.ended
    return history.replace(length=np.where(earlier == 0, history.length, 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="runs/connect_four", help="as in alphagat.load (default: %(default)s)")
    parser.add_argument("--board", help="default: the first of the run")
    parser.add_argument(
        "--lambdas", type=float, nargs="+", default=[1, 0.95, 0.9, 0.8, 0.6], help="(default: 1 to 0.6)"
    )
    parser.add_argument("--plies", type=int, nargs="+", default=[2, 6, 10, 14, 18, 26], help="limits of the rows")
    parser.add_argument("--games", type=int, default=256, help="default: %(default)s")
    parser.add_argument("--positions", type=int, default=200, help="the most per row (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    options = parser.parse_args()
    sharding.configure_cpu_devices(1)
    agent = load(options.source, board=options.board)
    history = play_games(agent, options.games, options.seed)
    plies = np.asarray(history.length) - 1
    targets = {each: np.asarray(value_targets(history, each)) for each in options.lambdas}
    columns = "plies", "decided positions", *(f"lambda {each:g}" for each in targets), "search value", "move"
    table = Table(*columns, title=f"{agent.game.name}, {options.source}: share of right signs")
    random = np.random.default_rng(options.seed)
    for low, high in zip(options.plies, options.plies[1:]):
        found = np.argwhere((low <= plies) & (plies < high))
        if not len(found):
            continue
        rows = tuple(random.permutation(found)[: options.positions].T)
        scores = score_positions(agent.game, jax.device_get(take(history.state, rows)))
        values = np.sign(scores.max(axis=1))
        decided, is_kept = values != 0, np.sign(scores[np.arange(len(values)), history.action[rows]]) == values
        estimates = [each[rows] for each in (*targets.values(), np.asarray(history.search_value))]
        are_right = [(np.sign(estimate) == values)[decided] for estimate in estimates]
        shares = [f"{right.mean():.1%}" for right in (*are_right, is_kept)]  # `is_kept`: also of drawn positions
        table.add_row(f"{low} to {high - 1}", str(decided.sum()), *shares)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
