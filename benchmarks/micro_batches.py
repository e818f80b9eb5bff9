"""Measures how long one example's gradient takes, by the number of positions that a device computes at once.

    taskset -c 0 python benchmarks/micro_batches.py --configs quickstart connect_four go
    taskset -c 0 python benchmarks/micro_batches.py --configs connect_four --config.network.name=resnet

A row is one board of a config, on one device. The sizes alternate in one process, and each figure is the median over
the rounds; the number in brackets is the median ratio to the whole batch in the same round.
"""

import argparse
import copy
import dataclasses
import functools
import statistics
from collections.abc import Callable

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table
from timing import median_ratio, take_turns

from alphagat.config_files import load_config
from alphagat.runtime import sharding
from alphagat.training.iteration import make_find_gradients
from alphagat.training.setup import Run, make_run
from alphagat.training.state import RunState, init_state


def gradient_call(run: Run, state: RunState, number: int, positions: int) -> Callable[[], object]:
    """Returns a call that computes the gradient over a batch of board `number`, `positions` at a time."""
    config, board = copy.deepcopy(run.config), state.boards[number]
    config.learner.num_micro_batches = config.learner.batch_size // positions
    setup = dataclasses.replace(run.boards[number], config=config)
    keys = jax.random.split(jax.random.key(0), len(board.groups))
    find = jax.jit(make_find_gradients(setup, run.mesh))
    return functools.partial(find, state.train.params, jnp.float32(1), board, keys)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configs", nargs="+", default=["quickstart", "connect_four", "go"], help="default: all three")
    parser.add_argument("--batch_size", type=int, default=256, help="default: %(default)s")
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 64, 32, 16, 8], help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=11, help="default: %(default)s")
    options, overrides = parser.parse_known_args()
    if odd := [size for size in options.sizes if options.batch_size % size]:
        parser.error(f"--sizes {odd[0]}: it must divide --batch_size {options.batch_size}")
    sizes = [options.batch_size, *options.sizes]
    table = Table("board", "width", *(f"{size} at once" for size in sizes), title="milliseconds per example")
    for name in options.configs:
        config = load_config(
            name, ["--config.mesh.data=1", f"--config.learner.batch_size={options.batch_size}", *overrides]
        )
        run = make_run(config, sharding.make_mesh(1))
        state = init_state(run)
        for number, setup in enumerate(run.boards):
            calls = {size: gradient_call(run, state, number, size) for size in sizes}
            seconds = take_turns(calls, options.rounds)
            cells = [
                f"{1000 * statistics.median(seconds[size]) / options.batch_size:.3f} "
                f"({median_ratio(seconds[size], seconds[options.batch_size]):.2f})"
                for size in sizes
            ]
            table.add_row(setup.game.name, str(config.network.width), *cells)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
