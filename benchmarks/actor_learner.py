"""Measures separate actor and learner devices against devices that do both: `python benchmarks/actor_learner.py`.

Prints seconds per iteration: medians over alternating rounds, on the same devices. In `after each other`, the learners
wait for the actors, so the difference is the gain from overlap. The age of the actors' weights is in updates.
"""

import argparse
import statistics
from typing import Any

import jax
from rich.console import Console
from rich.table import Table
from timing import OneBoardRun, median_ratio, take_turns

from alphagat import config_files
from alphagat.runtime import sharding
from alphagat.training.actor_learner import PARAMS_AGE, ActorLearnerIterations
from alphagat.training.setup import make_configured_mesh, make_run
from alphagat.training.state import init_state

WARM_UP = 3  # iterations with updates


def start_together(config):
    running = OneBoardRun(config, make_configured_mesh(config))
    running.warm_up(WARM_UP)
    return running.iterate


def start_apart(config, ages: list[float], *, overlaps: bool):
    """Adds the age of the parameters that play to `ages` in every iteration after the warm-up."""
    run = make_run(config, make_configured_mesh(config))
    holder = [init_state(run)]
    iterations: Any = ActorLearnerIterations(run, holder[0], print)
    count = 0
    if not overlaps:
        play = iterations._play
        iterations._play = [lambda *arguments: jax.block_until_ready(play[0](*arguments))]

    def iterate():
        nonlocal count
        count += 1
        holder[0], metrics, _ = iterations.run(holder[0], count)
        ages.extend([float(metrics[PARAMS_AGE])] if PARAMS_AGE in metrics else [])
        return holder[0]

    for _ in range(run.boards[0].plan.first_update_iteration + WARM_UP):
        iterate()
    ages.clear()  # there is no age before the first update
    return iterate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="configs/connect_four.py", help="config to run (default: %(default)s)")
    parser.add_argument("--devices", type=int, default=2, help="half of them are actors (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    if options.devices < 2:
        parser.error(f"--devices {options.devices}: use at least 2, an actor and a learner")
    sharding.configure_cpu_devices(options.devices)

    def configured(actors: int):
        flags = [f"--config.mesh.data={options.devices}", f"--config.mesh.actors={actors}"]
        return config_files.load_config(options.config, [*flags, "--config.num_iterations=10000"])

    half, ages = options.devices // 2, []
    ways = {
        "together": start_together(configured(0)),
        "apart": start_apart(configured(half), ages, overlaps=True),
        "apart, after each other": start_apart(configured(half), [], overlaps=False),
    }
    seconds = take_turns(ways, options.rounds)
    table = Table("way", "s per iteration", "over together", title=f"{options.config}, {options.devices} devices")
    for name, found in seconds.items():
        table.add_row(name, f"{statistics.median(found):.3f}", f"{median_ratio(found, seconds['together']):.2f}")
    Console().print(table, f"age of the parameters that played: {statistics.median(ages):g} updates")


if __name__ == "__main__":
    main()
