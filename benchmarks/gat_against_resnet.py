"""Compares the GAT with a ResNet in the same pipeline, by a protocol fixed before the first run.

    python benchmarks/gat_against_resnet.py --config configs/connect_four.py --workdir runs/gat_against_resnet

1. The GAT is that of the config. It plays two ResNets with the same number of blocks, a plain one and one with global
   pooling (Wu 2019, section 3.3), or those of `--rivals`. The width of each is the multiple of 16 that best matches the
   GAT's number of parameters; on a CPU, widths in between cost as much as the next multiple. Rules, search, self-play,
   replay, losses, optimizer and schedule are the same.
2. Tuning is the same for each network. The candidate learning rates are that of the config, half of it, and twice it.
   Each candidate trains for `--tuning_minutes` with `--tuning_seed`, which no result uses. The rate that scores best
   against the GAT at the config's rate wins. While a network's best rate is its lowest or highest, half or twice that
   rate is tried, too.
3. Each network trains for `--minutes` with each seed, seeds in the outer loop. Only training time counts, so faster
   networks play more games. `--at_once 2` trains two at a time, each on half of the cores.
4. Each ResNet plays the GAT of its seed in `--games` games with `--simulations`, from distinct openings, each with both
   colours. The GAT is ahead on this board if the upper end of the ResNet's 95 % interval over the seeds is below one
   half. It is behind if the opposite holds. On solved boards, the report includes shares of best moves.
5. The result is published in either case, with every seed.

Finished runs are not repeated: the command resumes where it was stopped.
"""

import argparse
import dataclasses
import functools
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from variants import Effort, Test, Variant, compare, end_trainings_as_well

from alphagat import config_files
from alphagat.agents.build import make_configured_network, make_params, param_shapes
from alphagat.config import Config
from alphagat.games import make_game
from alphagat.networks import Network
from alphagat.runtime import sharding

RIVALS = "resnet", "resnet_pool"  # network.name
WIDTHS = range(16, 193, 16)
FACTORS = 1.0, 0.5, 2.0  # multiples of the config's learning rate; 1 comes first
LIMITS = 1 / 16, 16.0  # of the factors
ROUNDS = 7
EVALUATIONS = 4  # consecutive, inside one program, as in a search


def rival_flags(name: str, width: int) -> list[str]:
    return [f"network.name={name}", f"network.width={width}"]


def configure(path: str, flags: Sequence[str]) -> Config:
    return config_files.load_config(path, [f"--config.{flag}" for flag in flags])


def num_params(config: Config) -> int:
    game = make_game(config.boards[0])
    return sum(leaf.size for leaf in jax.tree.leaves(param_shapes(game, make_configured_network(config, game))))


def matching_width(count: int, config: Config) -> int:
    """Returns the width with which the network of `config` has about `count` parameters."""

    def error(width: int) -> int:
        network = dataclasses.replace(config.network, width=width)
        return abs(num_params(dataclasses.replace(config, network=network)) - count)

    return min(WIDTHS, key=error)


def make_evaluation(config: Config) -> Callable[[], jax.Array]:
    """Returns a function that evaluates a self-play batch several times."""
    game = make_game(config.boards[0])
    network = make_configured_network(config, game)
    params = make_params(game, network, jax.random.key(0))
    shape = config.selfplay.num_games, game.topology.num_nodes, game.num_features
    nodes = jax.random.uniform(jax.random.key(1), shape)  # not zeros, on which a GPU is faster than on real inputs
    return repeat_evaluation(network, params, nodes, EVALUATIONS)


def repeat_evaluation(network: Network, params: Any, nodes: jax.Array, times: int) -> Callable[[], jax.Array]:
    """Returns a program that evaluates `[B, V, F]` nodes in a loop; each pass depends on the one before."""

    def evaluate(params: Any, nodes: jax.Array) -> jax.Array:
        def once(nodes: jax.Array, _: None) -> tuple[jax.Array, None]:
            logits, value = network.apply(params, nodes)
            return nodes + 0 * (logits.mean() + value.mean()), None

        return jax.lax.scan(once, nodes, length=times)[0]

    return functools.partial(jax.jit(evaluate), params, nodes)


def median_seconds(functions: Sequence[Callable[[], Any]]) -> list[float]:
    """Times all functions in alternation; the first round compiles."""
    times: list[list[float]] = [[] for _ in functions]
    for number in range(ROUNDS + 1):
        for function, seconds in zip(functions, times):
            start = time.perf_counter()
            jax.block_until_ready(function())
            if number:
                seconds.append(time.perf_counter() - start)
    return [statistics.median(each) for each in times]


def find_rivals(path: str, names: Sequence[str], console: Console) -> dict[str, list[str]]:
    """Returns the flags of each rival, with the width that matches the GAT's number of parameters."""
    gat = configure(path, [])
    count, configs, rivals = num_params(gat), [gat], {}
    for name in names:
        config = configure(path, rival_flags(name, WIDTHS[0]))
        config.network.width = matching_width(count, config)
        rivals[f"{name}_{config.network.width}"] = rival_flags(name, config.network.width)
        configs.append(config)
    base, *seconds = median_seconds([make_evaluation(config) for config in configs])
    for name, config, each in zip(rivals, configs[1:], seconds):
        ratio = f"{num_params(config) / count:.2f} times the parameters, {each / base:.2f} times the time of the GAT"
        console.print(f"{name}: {ratio}")
    return rivals


def tune(networks: Sequence[str], scores_of: Callable) -> dict[str, float]:
    """Returns the best factor of each network, and widens the range of a network whose best factor lies at its edge.

    Args:
      scores_of: returns the scores of the factors by network, `{network: {factor: score}}`, given `{network: factors}`.
    """
    factors = {network: list(FACTORS) for network in networks}
    while True:
        scores = scores_of(factors)
        best = {network: max(each, key=lambda factor: each[factor]) for network, each in scores.items()}
        wider = {network: widen(factors[network], best[network]) for network in networks}
        if wider == factors:
            return best
        factors = wider


def widen(factors: list[float], best: float) -> list[float]:
    """Adds the next factor if `best` is the lowest or the highest one, unless it is a limit."""
    if best in LIMITS or min(factors) < best < max(factors):
        return factors
    return [*factors, best / 2 if best == min(factors) else best * 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="configs/connect_four.py", help="default: %(default)s")
    parser.add_argument("--workdir", type=Path, default=Path("runs/gat_against_resnet"), help="default: %(default)s")
    parser.add_argument("--minutes", type=float, default=10, help="training time per run (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--first_seed", type=int, default=0, help="the others follow (default: %(default)s)")
    parser.add_argument("--at_once", type=int, default=1, help="concurrent training runs (default: %(default)s)")
    parser.add_argument("--tuning_minutes", type=float, default=4, help="per candidate (default: %(default)s)")
    parser.add_argument("--tuning_seed", type=int, default=100, help="default: %(default)s")
    parser.add_argument("--games", type=int, default=400, help="games per seed (default: %(default)s)")
    parser.add_argument("--simulations", type=int, default=64, help="simulations per move (default: %(default)s)")
    parser.add_argument("--rivals", nargs="+", choices=RIVALS, default=RIVALS, help="(default: both)")
    options = parser.parse_args()
    sharding.configure_cpu_devices(0)
    end_trainings_as_well()
    console, test = Console(width=200), Test(options.games, options.simulations)
    options.workdir.mkdir(parents=True, exist_ok=True)
    networks = {"gat": []} | find_rivals(options.config, options.rivals, console)
    rate = configure(options.config, []).learner.learning_rate

    def variant(network: str, factor: float, name: str, folder: Path) -> Variant:
        flags = [*networks[network], f"learner.learning_rate={rate * factor:g}"]
        return Variant(name, flags, options.config, folder, pilots=options.workdir / network)

    def scores_of(factors: dict[str, list[float]]) -> dict[str, dict[float, float]]:
        names = {(network, each): f"{network}_{each:g}" for network, tried in factors.items() for each in tried}
        tries = [variant(*key, name, options.workdir / "tuning" / name) for key, name in names.items()]
        found = compare(tries, [options.tuning_seed], Effort(options.tuning_minutes, options.at_once), test, console)
        return {
            network: {each: found[names[network, each]][0].get("score", 0.5) for each in tried}  # the base has no score
            for network, tried in factors.items()
        }

    best = tune(list(networks), scores_of)
    console.print("learning rates:", {network: rate * factor for network, factor in best.items()})
    final = [variant(network, factor, network, options.workdir / network) for network, factor in best.items()]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    compare(final, seeds, Effort(options.minutes, options.at_once), test, console)


if __name__ == "__main__":
    main()
