"""Compares ways of computing one gradient: device meshes, sharded networks, precisions, memory savings.

    python benchmarks/parallelism.py --board hex:7 --width 128 --batch 512

All use the same positions, from a few iterations of self-play. `error` is the largest difference of any gradient from
that of one device in float32, relative to the largest gradient. `memory` is the compiler's plan for a device:
arguments, results and temporaries. `ratio` is the speed relative to one device: medians of alternating rounds. CPU
devices share the physical cores, which limit the speedup, and emulate half precision.
"""

import argparse
import statistics

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from timing import OneBoardRun, median_ratio, take_turns

from alphagat.config import Config
from alphagat.runtime import sharding
from alphagat.runtime.memory import memory_needed
from alphagat.training.iteration import make_find_gradients
from alphagat.training.setup import make_configured_mesh, make_setups
from alphagat.training.state import state_shardings

FIRST = "1 device"
WAYS = {
    FIRST: {},
    "data=8": {"mesh.data": 8},
    "data=4, model=2": {"mesh.data": 4, "mesh.model": 2},
    "data=8, fsdp": {"mesh.data": 8, "mesh.fsdp": True},
    "data=2, model=4, fsdp": {"mesh.data": 2, "mesh.model": 4, "mesh.fsdp": True},
    "data=4, stage=2": {"mesh.data": 4, "mesh.stage": 2},
    "data=1, stage=4": {"mesh.stage": 4},
    "data=2, stage=2, model=2": {"mesh.data": 2, "mesh.stage": 2, "mesh.model": 2},
    "bfloat16": {"network.precision": "bfloat16"},
    "float16": {"network.precision": "float16"},
    "remat": {"network.remat": True},
    "8 micro-batches": {"learner.num_micro_batches": 8},
    "remat, 8 micro-batches": {"network.remat": True, "learner.num_micro_batches": 8},
}


def make_config(options: argparse.Namespace, changes: dict) -> Config:
    config = Config(boards=(options.board,), num_iterations=1000)
    config.network.width, config.network.num_blocks = options.width, options.blocks
    config.network.num_heads = 4  # a multiple of the model axis
    config.search.num_simulations, config.selfplay.horizon = 2, 8
    config.learner.batch_size = config.replay.min_size = options.batch
    config.learner.num_micro_batches = 1
    config.replay.capacity, config.mesh.data = 8 * options.batch, 1
    for path, value in changes.items():
        section, name = path.split(".")
        setattr(getattr(config, section), name, value)
    return config


def play(options: argparse.Namespace):
    """Returns the state of a run on the host, with a filled replay buffer."""
    running = OneBoardRun(make_config(options, {}), sharding.make_mesh(1))
    running.warm_up(1)
    return jax.device_get(running.state)


def prepare(options: argparse.Namespace, changes: dict, state):
    """Returns a call that computes the gradient, the gradient, and the bytes it needs per device."""
    config = make_config(options, changes)
    (setup,), mesh = make_setups(config), make_configured_mesh(config)
    placed = jax.device_put(state, state_shardings(mesh, state, fsdp=config.mesh.fsdp))
    keys = jax.vmap(lambda group: jax.random.fold_in(jax.random.key(5), group))(placed.boards[0].groups)
    scale = jnp.float32(2.0**12 if config.network.precision == "float16" else 1)
    arguments = placed.train.params, scale, placed.boards[0], keys
    program = jax.jit(make_find_gradients(setup, mesh)).lower(*arguments).compile()
    gradients, _ = jax.device_get(program(*arguments))
    replay = sum(leaf.nbytes for leaf in jax.tree.leaves(placed.boards[0].replay)) / config.mesh.data
    return lambda: program(*arguments), gradients, memory_needed(program) - replay


def largest(tree) -> float:
    return max(float(np.abs(leaf).max()) for leaf in jax.tree.leaves(tree))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", default="hex:7")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    sharding.configure_cpu_devices(8)
    state = play(options)
    ways = {name: prepare(options, changes, state) for name, changes in WAYS.items()}
    seconds = take_turns({name: call for name, (call, _, _) in ways.items()}, options.rounds)
    title = f"{options.board}, width {options.width}, {options.blocks} blocks, batch {options.batch}"
    table = Table("way", "error", "memory, MB per device", "examples/s", "ratio", title=title)
    exact = ways[FIRST][1]
    for name, (_, gradients, memory) in ways.items():
        error = largest(jax.tree.map(np.subtract, gradients, exact)) / largest(exact)
        speed = options.batch / statistics.median(seconds[name])
        ratio = median_ratio(seconds[FIRST], seconds[name])
        table.add_row(name, f"{error:.1e}", f"{memory / 1e6:,.1f}", f"{speed:,.0f}", f"{ratio:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
