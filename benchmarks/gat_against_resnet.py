"""The GAT against a ResNet in the same pipeline, by a protocol that was written down before the first run.

    python benchmarks/gat_against_resnet.py --config configs/connect_four.py --workdir runs/gat_against_resnet

1. The GAT is that of the config. Two ResNets with as many blocks oppose it, or one if they are the same: one as wide as
   gives it the number of the GAT's parameters, and one as wide as gives it the GAT's time for a batch of self-play on
   one device, a multiple of 16. Rules, search, self-play, replay, losses, optimizer and schedule are the same.
2. Tuning, alike for each network: the learning rate is that of the config, half of it, or twice, whichever scores best
   after `--tuning_minutes` against the GAT at the config's own, at seed `--tuning_seed`, which no result uses.
3. Each network trains `--minutes` with each seed, the seeds in the outer loop. The time is that of training alone: all
   have it, whatever number of games it gives them. `--at_once 2` trains two at a time, each on half of the cores.
4. Each ResNet meets the GAT of its seed in `--games` games from distinct openings, each with both colours, with
   `--simulations`. The GAT is ahead of it on this board if the ResNet scores less than one half with every seed, and
   the upper end of its 95 % interval over all games is below one half; behind, if the opposite holds. Shares of best
   moves are stated where the board is solved.
5. The result is published whichever way it goes, with every seed.

Runs that are there already are not made again: the command goes on where it was stopped.
"""

import argparse
import functools
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from variants import Effort, Test, Variant, compare, end_trainings_as_well

from alphagat import commands
from alphagat.agents.build import make_configured_network, make_params
from alphagat.config import Config
from alphagat.games import make_game
from alphagat.runs.atomic_files import write_atomically
from alphagat.runtime import sharding

WIDTHS = range(16, 193, 4)
FAST_WIDTHS = WIDTHS[::4]  # multiples of 16; a CPU takes as long for what lies between as for the next
FACTORS = 1.0, 0.5, 2.0  # of the learning rate; the config's own first
ROUNDS = 7
EVALUATIONS = 4  # in a row, inside one program, as a search makes them


def resnet_flags(width: int) -> list[str]:
    return ["network.name=resnet", f"network.width={width}"]


def configure(path: str, flags: Sequence[str]) -> Config:
    return commands.load_config(path, [f"--config.{flag}" for flag in flags])


def make_evaluation(config: Config) -> tuple[int, Callable[[], jax.Array]]:
    """Returns the number of a network's parameters, and a function that evaluates a batch of self-play a few times."""
    game = make_game(config.boards[0])
    network = make_configured_network(config, game)
    params = make_params(game, network, jax.random.key(0))
    shape = config.selfplay.num_games, game.topology.num_nodes, game.num_features
    nodes = jax.random.uniform(jax.random.key(1), shape)  # a GPU is faster with zeros than with what it really gets

    def evaluate(params: Any, nodes: jax.Array) -> jax.Array:
        def once(nodes: jax.Array, _: None) -> tuple[jax.Array, None]:
            logits, value = network.apply(params, nodes)
            return nodes + 0 * (logits.mean() + value.mean()), None

        return jax.lax.scan(once, nodes, length=EVALUATIONS)[0]

    return sum(leaf.size for leaf in jax.tree.leaves(params)), functools.partial(jax.jit(evaluate), params, nodes)


def median_seconds(evaluations: Sequence[Callable[[], jax.Array]]) -> list[float]:
    """Times all in turns; the first round compiles."""
    times: list[list[float]] = [[] for _ in evaluations]
    for number in range(ROUNDS + 1):
        for evaluate, seconds in zip(evaluations, times):
            start = time.perf_counter()
            jax.block_until_ready(evaluate())
            if number:
                seconds.append(time.perf_counter() - start)
    return [statistics.median(each) for each in times]


def match_widths(path: str, console: Console) -> dict[str, int]:
    """Returns the widths of the ResNets with the GAT's number of parameters, and with its time."""
    resnets = {width: make_evaluation(configure(path, resnet_flags(width))) for width in WIDTHS}
    count, evaluate = make_evaluation(configure(path, []))
    same_size = min(WIDTHS, key=lambda width: abs(resnets[width][0] - count))
    timed = sorted({same_size, *FAST_WIDTHS})
    *times, goal = median_seconds([*(resnets[width][1] for width in timed), evaluate])
    seconds = dict(zip(timed, times))
    same_time = min(FAST_WIDTHS, key=lambda width: abs(seconds[width] - goal))
    widths = {"the same size": same_size, "the same time": same_time}
    for name, width in widths.items():
        ratio = f"{resnets[width][0] / count:.2f} times the parameters, {seconds[width] / goal:.2f} times the time"
        console.print(f"resnet_{width}, for {name}: {ratio} of the GAT")
    return widths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="configs/connect_four.py", help="default: %(default)s")
    parser.add_argument("--workdir", type=Path, default=Path("runs/gat_against_resnet"), help="default: %(default)s")
    parser.add_argument("--minutes", type=float, default=10, help="of training, each (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--at_once", type=int, default=1, help="trainings at a time (default: %(default)s)")
    parser.add_argument("--tuning_minutes", type=float, default=4, help="of each try (default: %(default)s)")
    parser.add_argument("--tuning_seed", type=int, default=100, help="default: %(default)s")
    parser.add_argument("--games", type=int, default=400, help="per seed (default: %(default)s)")
    parser.add_argument("--simulations", type=int, default=64, help="in these games (default: %(default)s)")
    options = parser.parse_args()
    sharding.configure_cpu_devices(0)
    end_trainings_as_well()
    console, test = Console(width=200), Test(options.games, options.simulations)
    options.workdir.mkdir(parents=True, exist_ok=True)
    # A second start measures other times, and must take the same networks.
    kept = options.workdir / f"widths_{Path(options.config).stem}.json"
    if not kept.exists():
        write_atomically(kept, json.dumps(match_widths(options.config, console)))
    widths = json.loads(kept.read_text()).values()
    networks = {"gat": []} | {f"resnet_{width}": resnet_flags(width) for width in widths}  # one where both are the same
    rate = configure(options.config, []).learner.learning_rate

    def variant(network: str, factor: float, name: str, folder: Path) -> Variant:
        flags = [*networks[network], f"learner.learning_rate={rate * factor:g}"]
        return Variant(name, flags, options.config, folder, pilots=options.workdir / network)

    names = {(network, factor): f"{network}_{factor:g}" for network in networks for factor in FACTORS}
    tries = [variant(*key, name, options.workdir / "tuning" / name) for key, name in names.items()]
    found = compare(tries, [options.tuning_seed], Effort(options.tuning_minutes, options.at_once), test, console)
    scores = {key: found[name][0].get("score", 0.5) for key, name in names.items()}  # the base has no score
    best = {network: max(FACTORS, key=lambda factor: scores[network, factor]) for network in networks}
    console.print("learning rates:", {network: rate * factor for network, factor in best.items()})
    final = [variant(network, factor, network, options.workdir / network) for network, factor in best.items()]
    compare(final, range(options.seeds), Effort(options.minutes, options.at_once), test, console)


if __name__ == "__main__":
    main()
