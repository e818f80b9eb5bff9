"""Measures every part on 1, 2, 4 and 8 devices, at one global batch: `python benchmarks/throughput.py`, `make bench`.

Measurements alternate in one process, and each figure is the median over the rounds, so noise affects all alike.
The number in brackets is the median ratio to the first number of devices in the same round. Compare figures within one
table only. XLA drops the recording of positions from self-play that is timed alone.
"""

import argparse
import dataclasses
import functools
import itertools
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table
from timing import OneBoardRun, median_ratio, take_turns

from alphagat import config_validation
from alphagat.agents.build import make_params
from alphagat.config import Config
from alphagat.learner.loss import Batch
from alphagat.learner.update import TrainState, make_health, make_update, mean_gradients
from alphagat.runs.checkpoint_writer import CheckpointWriter
from alphagat.runtime import sharding
from alphagat.runtime.cpu_cache import map_in_parts
from alphagat.search import Evaluation
from alphagat.training.iteration import play_and_store
from alphagat.training.setup import make_setups
from alphagat.training.state import BOARD_SPECS, init_state

UPDATES = 4  # consecutive, inside one program, as in an iteration
NETWORKS = {
    "GAT dense": {"name": "gat", "backend": "dense"},
    "GAT dense, all blocks attend": {
        "name": "gat",
        "backend": "dense",
        "blocks": ("attention",),
        "num_heads": 4,
        "key_size": 12,
    },
    "GAT jraph": {"name": "gat", "backend": "jraph"},
    "ResNet": {"name": "resnet"},
}


def make_config(options: argparse.Namespace, devices: int, network: dict[str, Any]) -> Config:
    config = Config(boards=(options.board,))
    config.mesh.data = devices
    for field, value in network.items():
        setattr(config.network, field, value)
    config.network.width = options.width
    config.search.num_simulations = options.simulations
    config.selfplay.num_games = options.games
    config.selfplay.plies_per_iteration = options.plies
    config.replay.min_size = config.learner.batch_size = 256
    config_validation.validate(config)
    return config


Parts = dict[str, tuple[Callable[[], object], float]]  # row: a call, and the number of units that it processes


def make_parts(options: argparse.Namespace, devices: int, folder: Path) -> Parts:
    """Returns the rows of one number of devices."""
    parts: Parts = {}
    for name, network in NETWORKS.items():
        config = make_config(options, devices, network)
        parts |= network_parts(name, config)
        if name == "GAT dense":
            parts |= run_parts(config, folder)
    return parts


def measure(options: argparse.Namespace, columns: dict[int, Parts]) -> dict[str, dict[int, list[float]]]:
    """Returns rates per second by row, number of devices and round."""
    rows = columns[next(iter(columns))]
    calls = {(row, devices): parts[row][0] for row in rows for devices, parts in columns.items()}
    rates: dict[str, dict[int, list[float]]] = {row: {} for row in rows}
    for (row, devices), seconds in take_turns(calls, options.rounds).items():
        rates[row][devices] = [columns[devices][row][1] / each for each in seconds]
    bare, play = rates["GAT dense, evaluations/s"], rates["self-play, evaluations/s"]
    rates["self-play / GAT dense evaluations"] = {
        devices: [one / other for one, other in zip(play[devices], bare[devices], strict=True)] for devices in columns
    }
    return rates


def network_parts(name: str, config: Config) -> dict:
    """Returns the bare network at the batch size of self-play, and updates on random batches."""
    (setup,), mesh = make_setups(config), sharding.make_mesh(config.mesh.data)
    game, size, batch_size = setup.game, setup.plan.num_games, config.learner.batch_size
    repeats = max(config.search.num_simulations // 2, 1)
    params = make_params(game, setup.network, jax.random.key(0))
    nodes = jax.random.uniform(jax.random.key(1), (max(size, batch_size), game.topology.num_nodes, game.num_features))
    batch = Batch(
        nodes[:batch_size],
        jnp.ones((batch_size, game.num_actions), bool),
        jnp.full((batch_size, game.num_actions), 1 / game.num_actions),
        jnp.ones(batch_size),
        jnp.zeros(batch_size),
    )
    step, health = jnp.zeros((), jnp.int32), make_health(scale_loss=False)
    train = TrainState(params, setup.optimizer.init(params), step, health)
    find_gradients = functools.partial(
        mean_gradients,
        network=setup.network,
        value_weight=1.0,
        axis_name=sharding.DATA,
        num_micro_batches=setup.num_micro_batches(mesh),
    )

    def evaluate(params, nodes):
        def body(_, nodes):  # each pass depends on the previous one, so XLA cannot remove any
            prior_logits, value = map_in_parts(functools.partial(setup.network.apply, params), nodes)
            return nodes + 1e-6 * (value + prior_logits.mean(-1))[:, None, None]

        return jax.lax.fori_loop(0, repeats, body, nodes)

    split, everywhere = sharding.SHARDED, sharding.REPLICATED
    evaluations = jax.jit(sharding.over_data(evaluate, mesh, (everywhere, split), split))
    gradients = sharding.over_data(find_gradients, mesh, (everywhere, everywhere, split), everywhere)
    update = make_update(gradients, setup.optimizer)

    def update_repeatedly(train, batch):
        return jax.lax.fori_loop(0, UPDATES, lambda _, train: update(train, batch)[0], train)

    return {
        f"{name}, evaluations/s": (functools.partial(evaluations, params, nodes[:size]), size * repeats),
        f"{name}, training examples/s": (
            functools.partial(jax.jit(update_repeatedly), train, batch),
            UPDATES * batch_size,
        ),
    }


def run_parts(config: Config, folder: Path) -> Parts:
    """Returns self-play with and without a network, the whole iteration, and a complete checkpoint write."""
    mesh = sharding.make_mesh(config.mesh.data)
    running = OneBoardRun(config, mesh)
    setup, state = running.setup, init_state(running.run)
    specs = sharding.REPLICATED, BOARD_SPECS

    def uniform(params, states):
        return Evaluation(jnp.zeros(states.legal_action_mask.shape), jnp.zeros(states.terminated.shape))

    def play(setup, params, board):
        keys = jax.vmap(functools.partial(jax.random.fold_in, jax.random.key(0)))(board.groups)
        is_full = jnp.ones(setup.plan.plies_per_iteration, bool)
        return play_and_store(setup, params, board, keys, is_full)[0].games.plies

    def compile_play(setup):
        part = functools.partial(play, setup)
        return jax.jit(sharding.over_data(part, mesh, specs, sharding.SHARDED))

    bare = dataclasses.replace(setup, evaluate=uniform)
    simulations = setup.plan.frames_per_iteration * config.search.num_simulations
    writer, steps = CheckpointWriter(folder / str(mesh.size), keep=1), itertools.count()

    def save():
        writer.save(state, next(steps))
        writer.wait()

    save()
    running.warm_up(1)
    return {
        "mctx without a network, simulations/s": (
            functools.partial(compile_play(bare), state.train.params, state.boards[0]),
            simulations,
        ),
        "self-play, evaluations/s": (
            functools.partial(compile_play(setup), state.train.params, state.boards[0]),
            simulations + setup.plan.frames_per_iteration,
        ),
        "whole iteration, frames/s": (running.iterate, setup.plan.frames_per_iteration),
        "checkpoint, MB/s": (save, sum(leaf.nbytes for leaf in jax.tree.leaves(state)) / 1e6),
    }


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", default="connect_four")
    parser.add_argument("--devices", default="1,2,4,8", help="comma-separated (default: %(default)s)")
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--games", type=int, default=128)
    parser.add_argument("--simulations", type=int, default=32)
    parser.add_argument("--plies", type=int, default=2, help="per iteration (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    counts = [int(count) for count in options.devices.split(",")]
    sharding.configure_cpu_devices(max(counts))
    with tempfile.TemporaryDirectory() as folder:
        rates = measure(options, {count: make_parts(options, count, Path(folder)) for count in counts})
    size = f"width {options.width}, {options.games} games, {options.simulations} simulations"
    table = Table(title=f"{options.board}, {size}")
    table.add_column("")
    for count in counts:
        table.add_column(f"{count} device{'s' if count > 1 else ''}", justify="right")
    for row, by_devices in rates.items():
        cells = []
        for found in by_devices.values():
            value = statistics.median(found)
            ratio = median_ratio(found, by_devices[counts[0]])
            cells.append(f"{value:.2f}" if value < 10 else f"{value:,.0f} ({ratio:.2f})")
        table.add_row(row, *cells)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
