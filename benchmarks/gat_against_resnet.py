"""Compares the GAT with a ResNet in the same pipeline, by a protocol fixed before the first run.

    python benchmarks/gat_against_resnet.py --config configs/connect_four.py --workdir runs/gat_against_resnet

1. The GAT is that of the config. It plays two ResNets with the same number of blocks, a plain one and one with global
   pooling (Wu 2019, section 3.3), or those of `--rivals`. The width of each is the multiple of 16 that best matches the
   GAT's number of parameters; on a CPU, widths in between cost as much as the next multiple. Rules, search, self-play,
   replay, losses, optimizer and schedule are the same.
2. Tuning is the same for each network: first the learning rate, then the weight of the value loss. The candidates are
   the value of the config, and half and twice that rate, or a third and three times that weight. Each candidate trains
   for `--tuning_minutes` with each of `--tuning_seeds` seeds, which no result uses. The one with the highest mean score
   against the GAT of the config and its seed wins. While a network's best value is its lowest or highest, the next one
   is tried, too.
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
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
from rich.console import Console
from timing import ROUNDS, median_ratio, repeat_evaluation, take_turns
from variants import Effort, Test, Variant, compare, end_trainings_as_well

from alphagat import config_files
from alphagat.agents.build import make_configured_network, make_params, param_shapes
from alphagat.config import Config
from alphagat.games import make_game
from alphagat.runtime import sharding

RIVALS = "resnet", "resnet_pool"  # network.name
WIDTHS = range(16, 193, 16)
TUNED = {"learner.learning_rate": 2.0, "learner.value_weight": 3.0}  # the factor between candidates, by field
FIRST_STEPS = 0, -1, 1  # the candidates are the config's value times the factor to the power of the step
MAX_STEP = 4
EVALUATIONS = 4  # consecutive, inside one program, as in a search

Steps = tuple[int, ...]  # of the fields in `TUNED`
UNCHANGED: Steps = (0,) * len(TUNED)


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


def find_rivals(path: str, names: Sequence[str], console: Console) -> dict[str, list[str]]:
    """Returns the flags of each rival, with the width that matches the GAT's number of parameters."""
    gat = configure(path, [])
    count, configs, rivals = num_params(gat), [gat], {}
    for name in names:
        config = configure(path, rival_flags(name, WIDTHS[0]))
        config.network.width = matching_width(count, config)
        rivals[f"{name}_{config.network.width}"] = rival_flags(name, config.network.width)
        configs.append(config)
    base, *others = take_turns(dict(enumerate(map(make_evaluation, configs))), ROUNDS).values()
    for name, config, seconds in zip(rivals, configs[1:], others):
        time_ratio = median_ratio(seconds, base)
        ratio = f"{num_params(config) / count:.2f} times the parameters, {time_ratio:.2f} times the time of the GAT"
        console.print(f"{name}: {ratio}")
    return rivals


def tune(networks: Sequence[str], scores_of: Callable) -> dict[str, Steps]:
    """Returns the best step of each field in `TUNED`, by network. Fields are tuned in turn.

    Args:
      scores_of: returns `{network: [score]}` of `{network: [Steps]}`.
    """
    best = dict.fromkeys(networks, UNCHANGED)
    for index in range(len(TUNED)):
        best = tune_field(index, best, scores_of)
    return best


def tune_field(index: int, before: dict[str, Steps], scores_of: Callable) -> dict[str, Steps]:
    """Widens the range of a network while its best step lies at the edge."""
    tried: dict[str, Sequence[int]] = dict.fromkeys(before, FIRST_STEPS)
    while True:
        candidates = {network: [replaced(before[network], index, step) for step in tried[network]] for network in tried}
        scores = scores_of(candidates)
        best = {network: step for network in tried for _, step in [max(zip(scores[network], tried[network]))]}
        wider = {network: widen(tried[network], best[network]) for network in tried}
        if wider == tried:
            return {network: replaced(before[network], index, best[network]) for network in before}
        tried = wider


def replaced(steps: Steps, index: int, step: int) -> Steps:
    return (*steps[:index], step, *steps[index + 1 :])


def widen(steps: Sequence[int], best: int) -> Sequence[int]:
    """Adds the next step if `best` is the lowest or the highest one, unless it is a limit."""
    if abs(best) == MAX_STEP or min(steps) < best < max(steps):
        return steps
    return [*steps, best - 1 if best == min(steps) else best + 1]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="configs/connect_four.py", help="default: %(default)s")
    parser.add_argument("--workdir", type=Path, default=Path("runs/gat_against_resnet"), help="default: %(default)s")
    parser.add_argument("--minutes", type=float, default=10, help="training time per run (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--first_seed", type=int, default=0, help="the others follow (default: %(default)s)")
    parser.add_argument("--at_once", type=int, default=1, help="concurrent training runs (default: %(default)s)")
    parser.add_argument("--tuning_minutes", type=float, default=4, help="per candidate (default: %(default)s)")
    parser.add_argument("--tuning_seeds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--first_tuning_seed", type=int, default=100, help="the others follow (default: %(default)s)")
    parser.add_argument("--games", type=int, default=400, help="games per seed (default: %(default)s)")
    parser.add_argument("--simulations", type=int, default=64, help="simulations per move (default: %(default)s)")
    parser.add_argument("--rivals", nargs="+", choices=RIVALS, default=RIVALS, help="(default: both)")
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    sharding.configure_cpu_devices(0)
    end_trainings_as_well()
    console, test = Console(width=200), Test(options.games, options.simulations)
    options.workdir.mkdir(parents=True, exist_ok=True)
    networks = {"gat": []} | find_rivals(options.config, options.rivals, console)
    learner = configure(options.config, []).learner
    tuning_seeds = range(options.first_tuning_seed, options.first_tuning_seed + options.tuning_seeds)

    def values(steps: Steps) -> dict[str, float]:
        return {
            field: getattr(learner, field.removeprefix("learner.")) * factor**step
            for (field, factor), step in zip(TUNED.items(), steps)
        }

    def variant(network: str, steps: Steps, name: str, folder: Path) -> Variant:
        flags = [f"{field}={value:g}" for field, value in values(steps).items()]
        return Variant(name, networks[network] + flags, options.config, folder, pilots=options.workdir / network)

    def scores_of(candidates: dict[str, list[Steps]]) -> dict[str, list[float]]:
        every = [("gat", UNCHANGED), *((network, steps) for network, tried in candidates.items() for steps in tried)]
        names = {
            (network, steps): "_".join([network, *(f"{value:g}" for value in values(steps).values())])
            for network, steps in every
        }
        tries = [variant(*key, name, options.workdir / "tuning" / name) for key, name in names.items()]
        found = compare(tries, tuning_seeds, Effort(options.tuning_minutes, options.at_once), test, console)
        del found[tries[0].name]  # the base
        scores = {name: statistics.mean(each["score"] for each in results) for name, results in found.items()}
        scores[tries[0].name] = 0.5
        return {network: [scores[names[network, steps]] for steps in tried] for network, tried in candidates.items()}

    best = tune(list(networks), scores_of)
    console.print("tuned:", {network: values(steps) for network, steps in best.items()})
    final = [variant(network, steps, network, options.workdir / network) for network, steps in best.items()]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    compare(final, seeds, Effort(options.minutes, options.at_once), test, console)


if __name__ == "__main__":
    main()
