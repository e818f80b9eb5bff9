"""Compares the tours of a network with the shortest ones: `python benchmarks/tsp.py RUN --board tsp:20`.

Solves random instances with each player, and exactly (dynamic programming over subsets of cities: Held and Karp 1962).
Prints the mean length, the mean of how much each tour is longer than the shortest one, in percent with its 95 %
interval, and the share of shortest tours. The exact solver takes about 2 s per instance of 20 cities, and twice as much
for each further city. With --no-exact, tours are compared with those of the network alone.
"""

import argparse
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from alphagat import load
from alphagat.agents.analysis import no_search
from alphagat.evaluation.players import Player, random_player, search_player
from alphagat.evaluation.statistics import mean_interval
from alphagat.games.batches import take
from alphagat.games.tsp import TspGame, distance, distances
from alphagat.runtime import sharding

ALONE, EXACT = "network alone", "exact"
AT_ONCE = 50  # instances


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a run folder, a file of `alphagat export` or a name that alphagat.load takes")
    parser.add_argument("--board", help="tsp:N (default: the run's first)")
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the instances")
    parser.add_argument("--considered", type=int, help="search.max_num_considered_actions (default: the run's)")
    parser.add_argument("--simulations", type=int, nargs="*", default=[16, 64], help="per move, one player each")
    parser.add_argument("--no-exact", dest="exact", action="store_false", help="do not solve them exactly")
    options = parser.parse_args()
    sharding.configure_cpu_devices(1)
    agent = load(options.run, board=options.board)
    if options.considered is not None:
        agent.config.search.max_num_considered_actions = options.considered
    game = agent.game
    assert isinstance(game, TspGame)
    starts = jax.device_get(jax.vmap(game.init)(jax.random.split(jax.random.key(options.seed), options.instances)))
    alone = search_player(ALONE, no_search(agent.evaluator), agent.params)
    players = [random_player(game), nearest_neighbour(game), alone]
    players += [agent.player(number) for number in options.simulations]
    lengths = {player.name: solve(game, player, starts) for player in track(players, "players")}
    if options.exact:
        between = np.asarray(jax.vmap(distances)(starts.cities, starts.cities), np.float64)
        lengths[EXACT] = np.array([shortest_tour(each) for each in track(between, EXACT)])
    reference = EXACT if options.exact else ALONE
    best = lengths[reference]
    title = f"{game.name}, {options.instances} instances, seed {options.seed}"
    table = Table(
        "player", "mean length", f"longer than {reference}, %", f"not longer than {reference}, %", title=title
    )
    for name, each in lengths.items():
        excess = 100 * (each / best - 1)
        low, high = mean_interval(excess)
        share = 100 * (each < best * (1 + 1e-5)).mean()
        table.add_row(name, f"{each.mean():.4f}", f"{excess.mean():.2f} ({low:.2f} to {high:.2f})", f"{share:.1f}")
    Console(width=120).print(table)


def solve(game: TspGame, player: Player, starts: Any) -> np.ndarray:
    """Returns `[N]`, the lengths of the player's tours."""

    @jax.jit
    def visit_all(params, key, states):
        def move(states, key):
            actions = player.act(params, key, states)
            return jax.vmap(game.step, in_axes=(0, 0, None))(states, actions, key), None

        return jax.lax.scan(move, states, jax.random.split(key, game.max_plies))[0].length

    lengths = []
    for rows in np.array_split(np.arange(len(starts.cities)), len(starts.cities) // AT_ONCE + 1):
        lengths.append(visit_all(player.params, jax.random.key(rows[0]), take(starts, rows)))
    return np.concatenate(lengths)


def nearest_neighbour(game: TspGame) -> Player:
    """Returns the player that goes to the nearest city that was not visited."""

    def act(params, key, states):
        del params, key
        here = jnp.take_along_axis(states.cities, jax.vmap(lambda state: state.current)(states)[:, None, None], axis=1)
        return jnp.where(states.visited, jnp.inf, distance(states.cities, here)).argmin(axis=-1).astype(jnp.int32)

    return Player("nearest neighbour", act)


def shortest_tour(between: np.ndarray) -> float:
    """Returns the length of a shortest tour, for the distances `[N, N]`.

    `shortest[s, j]` is the length of a shortest path from the last city through all cities of the set s, without the
    last one, to j in s. The sets are numbers whose bits are cities, in order of size.
    """
    last = len(between) - 1
    sets = np.arange(1 << last)
    sizes = np.bitwise_count(sets)
    shortest = np.full((1 << last, last), np.inf)
    shortest[1 << np.arange(last), np.arange(last)] = between[last, :last]
    for size in range(1, last):
        smaller = sets[sizes == size]
        for city in range(last):
            without = smaller[smaller >> city & 1 == 0]
            shortest[without | 1 << city, city] = (shortest[without] + between[city, :last]).min(axis=1)
    return float((shortest[-1] + between[last, :last]).min())


if __name__ == "__main__":
    main()
