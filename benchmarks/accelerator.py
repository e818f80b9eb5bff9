r"""Compares an accelerator with the CPU of its host: numerical agreement, and training speed.

    python benchmarks/accelerator.py

Networks: the norm of the difference in logits, values and gradients, relative to the norm on the CPU, at JAX's default
matmul precision and at the highest. Rules: whether random games are bit-identical. Speed: of consecutive evaluations,
self-play and updates, with random weights, on one device. Most of the time is compilation: `--speed`, `--agreement` and
`--networks` split it over several calls. `--trace` also lists the kernels of one iteration with updates.

Self-play of the default and of an older network on four boards:

    python benchmarks/accelerator.py --speed --speed_boards hex:9 othello:8 go:9 chess --self_play \
        --networks "GAT fused, bfloat16" "GAT dense, all blocks attend, bfloat16"
"""

import argparse
import collections
import dataclasses
import functools
import gzip
import json
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gat_against_resnet import EVALUATIONS, make_evaluation, matching_width, num_params
from rich.console import Console
from rich.table import Table
from throughput import NETWORKS
from timing import ROUNDS, median_seconds

from alphagat import config_validation
from alphagat.agents.build import make_params, make_portable_network
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.evaluation.rollout import uniform_actions, word
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.learner.loss import Batch, alphazero_loss
from alphagat.networks import Network
from alphagat.runtime import sharding, xla
from alphagat.training.iteration import make_iteration, program_arguments, run_iteration
from alphagat.training.setup import Run, Setup, make_setups
from alphagat.training.state import RunState, init_state

HALF, DENSE, FUSED = {"precision": "bfloat16"}, {"backend": "dense"}, {"backend": "fused"}
NETWORKS = NETWORKS | {"GAT dense, bfloat16": HALF | DENSE, "GAT fused": FUSED, "GAT fused, bfloat16": HALF | FUSED}
SPEED_NETWORKS = {
    "GAT dense, float32": DENSE,
    "GAT dense, bfloat16": HALF | DENSE,
    "GAT fused, float32": FUSED,
    "GAT fused, bfloat16": HALF | FUSED,
    "GAT dense, all blocks attend, bfloat16": NETWORKS["GAT dense, all blocks attend"] | HALF,
    "ResNet, bfloat16": HALF | {"name": "resnet"},  # of about as many parameters
}
NUM_POSITIONS, NUM_GAMES, NUM_PLIES = 256, 512, 80


def make_config(board: str, width: int, network: dict[str, Any]) -> Config:
    config = Config(boards=(board,))
    config.mesh.data = 1
    for field, value in {"width": width, **network}.items():
        setattr(config.network, field, value)
    return config


def on_both(functions: tuple[Callable, Callable], *arguments: Any) -> tuple[Any, Any]:
    """Returns the result of the first function on the accelerator, and of the second on the CPU."""
    devices = jax.devices()[0], jax.local_devices(backend="cpu")[0]
    found, expected = (
        jax.device_get(jax.jit(function)(*jax.device_put(arguments, device)))
        for function, device in zip(functions, devices)
    )
    return found, expected


def distance(found: Any, expected: Any) -> float:
    """Returns the norm of the difference of two trees, relative to the norm of the second."""
    ours, theirs = (np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)]) for tree in (found, expected))
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


def random_batch(game: Game) -> Batch:
    keys = jax.random.split(jax.random.key(1), 4)
    shape = NUM_POSITIONS, game.num_actions
    return Batch(
        nodes=jax.random.normal(keys[0], (NUM_POSITIONS, game.topology.num_nodes, game.num_features)),
        legal_action_mask=jnp.ones(shape, bool),
        policy_target=jax.nn.softmax(jax.random.normal(keys[1], shape)),
        policy_weight=jnp.ones(NUM_POSITIONS),
        value_target=jax.random.uniform(keys[2], (NUM_POSITIONS,), minval=-1),
    )


def compare_network(config: Config) -> list[float]:
    """Returns the distances of logits, values and gradients."""
    (setup,) = make_setups(config)

    def compute(network: Network, params: Any, batch: Batch) -> tuple:
        gradient = jax.grad(lambda params: alphazero_loss(params, network, batch, 1.0)[0])(params)
        return *network.apply(params, batch.nodes), gradient

    params = jax.device_get(make_params(setup.game, setup.network, jax.random.key(0)))
    networks = setup.network, make_portable_network(config, setup.game)
    computations = functools.partial(compute, networks[0]), functools.partial(compute, networks[1])
    found, expected = on_both(computations, params, jax.device_get(random_batch(setup.game)))
    return [distance(ours, theirs) for ours, theirs in zip(found, expected)]


def play_the_same(game: Game) -> bool:
    """Returns whether random games are equal on both, move by move; actions are drawn by integer arithmetic."""

    def play(key: jax.Array) -> Any:
        seeds = jax.random.bits(key, (NUM_GAMES,), jnp.uint32)

        def step(states: Any, ply: jax.Array) -> tuple:
            actions = uniform_actions(word(seeds, ply), states.legal_action_mask)
            keys = jax.random.split(jax.random.fold_in(key, ply), NUM_GAMES)
            states = jax.vmap(game.step)(states, actions, keys)
            return states, (actions, states)

        first = jax.vmap(game.init)(jax.random.split(key, NUM_GAMES))
        return jax.lax.scan(step, first, jnp.arange(NUM_PLIES, dtype=jnp.uint32))[1]

    found, expected = on_both((play, play), jax.random.key(2))
    return all(np.array_equal(ours, theirs) for ours, theirs in zip(*map(jax.tree.leaves, (found, expected))))


class SpeedCase(NamedTuple):
    """One row of the speed test: its compiled program, the state that it starts from, and an evaluation of a batch."""

    setup: Setup
    program: jax.stages.Compiled
    state: RunState
    evaluate: Callable[[], Any]


def compile_case(board: str, network: str, options: argparse.Namespace) -> SpeedCase | UserError:
    """Returns the error of a network that its backend does not support."""
    config = make_speed_config(board, SPEED_NETWORKS[network], options)
    if config.network.name == "resnet":
        config.network.width = matching_width(num_params(make_speed_config(board, {}, options)), config)
    config_validation.validate(config)
    try:
        (setup,) = make_setups(config)
    except UserError as error:
        return error
    if options.self_play:  # without updates, the program compiles in half the time
        setup = dataclasses.replace(setup, plan=dataclasses.replace(setup.plan, updates_per_iteration=0))
    mesh = sharding.make_mesh(1)
    state = init_state(Run(config, mesh, (setup,)))
    program = make_iteration(setup, mesh).lower(*program_arguments(state)).compile()
    evaluate = make_evaluation(config)
    evaluate()
    return SpeedCase(setup, program, state, evaluate)


def time_case(case: SpeedCase, options: argparse.Namespace, console: Console) -> list[str]:
    """Returns the figures of a row: of an evaluation, and of iterations without and with updates."""
    setup, holder = case.setup, [case.state]
    frames, updates = setup.plan.frames_per_iteration, setup.plan.updates_per_iteration

    def iterate() -> Any:
        holder[0], metrics, _ = run_iteration(case.program, holder[0])
        return metrics

    evaluation, playing = median_seconds(case.evaluate) / EVALUATIONS, median_seconds(iterate)
    figures = [f"{1e3 * evaluation:.2f} ms", f"{options.games / evaluation:,.0f}", f"{frames / playing:,.0f}"]
    assert int(holder[0].iteration) <= setup.plan.first_update_iteration
    if options.self_play:
        return figures
    while int(holder[0].iteration) <= setup.plan.first_update_iteration:
        jax.block_until_ready(iterate())
    whole = median_seconds(iterate)
    if options.trace:
        trace_kernels(console, iterate)
    return [*figures, f"{1e3 * (whole - playing) / updates:.2f} ms", f"{frames / whole:,.0f}"]


def trace_kernels(console: Console, iterate: Callable[[], Any]) -> None:
    """Prints the number and the milliseconds of the kernels of one call."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(iterate())
        (file,) = Path(folder).rglob("*.trace.json.gz")
        with gzip.open(file) as stream:
            events = json.load(stream)["traceEvents"]
    metadata = (event for event in events if event.get("ph") == "M")
    names = {(event["pid"], event.get("tid")): event["args"].get("name", "") for event in metadata}
    kernels = collections.defaultdict(list)
    for event in events:
        if event.get("ph") == "X" and "Stream" in names.get((event["pid"], event["tid"]), ""):  # a GPU's
            kernels[event["name"]].append(event["dur"] / 1e3)
    table = Table("kernel", "number", "ms", title="one iteration")
    for name, times in sorted(kernels.items(), key=lambda item: -sum(item[1])):
        table.add_row(name[:80], str(len(times)), f"{sum(times):.2f}")
    console.print(table)


def agreement(options: argparse.Namespace, console: Console) -> None:
    table = Table("board", "network", "products", "logits", "values", "gradients")
    for board in options.boards:
        for name, network in NETWORKS.items():
            for precision in ("default", "highest") if "precision" not in network else ("default",):
                try:
                    with jax.default_matmul_precision(precision):
                        distances = compare_network(make_config(board, options.width, network))
                except UserError as error:
                    console.print(f"{board}, {name}: {error}")
                    continue
                table.add_row(board, name, precision, *(f"{each:.0e}" for each in distances))
    console.print(table)
    for board in options.rules:
        same = play_the_same(make_game(board))
        console.print(f"{board}: {NUM_GAMES} random games are {'the same' if same else 'NOT the same'}")


def add_speed_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `make_speed_config`."""
    parser.add_argument("--width", type=int, default=64, help="default: %(default)s")
    parser.add_argument("--num_blocks", type=int, default=6, help="default: %(default)s")
    parser.add_argument("--games", type=int, default=4096, help="games at once (default: %(default)s)")
    parser.add_argument("--simulations", type=int, default=32, help="default: %(default)s")
    parser.add_argument("--batch_size", type=int, default=2048, help="default: %(default)s")


def make_speed_config(board: str, network: dict[str, Any], options: argparse.Namespace) -> Config:
    """Returns the config of the speed test. Its replay fills slowly enough to time self-play without updates first."""
    config = make_config(board, options.width, {"num_blocks": options.num_blocks} | network)
    config.search.num_simulations, config.selfplay.num_games = options.simulations, options.games
    config.selfplay.plies_per_iteration, config.selfplay.max_plies = 4, 40
    config.learner.batch_size = options.batch_size
    filling = (ROUNDS + 2) * options.games * config.selfplay.plies_per_iteration
    config.replay.min_size = max(filling, options.batch_size)
    config.replay.capacity = max(config.replay.capacity, config.replay.min_size)
    return config


def speed(options: argparse.Namespace, console: Console) -> None:
    """Prints a table per board, with a row per network. The programs of a board compile at the same time, and are timed
    one after the other.
    """
    shape = f"{options.num_blocks} blocks, {options.games} games, {options.simulations} simulations"
    columns = "board", "network", "width", "evaluation", "evaluations/s", "self-play, frames/s"
    updating = () if options.self_play else ("update", "whole, frames/s")
    for board in options.speed_boards:
        table = Table(*columns, *updating, title=f"{shape}, batch {options.batch_size}")
        with ThreadPoolExecutor(len(options.networks)) as pool:
            cases = list(pool.map(functools.partial(compile_case, board, options=options), options.networks))
        for network, case in zip(options.networks, cases):
            if isinstance(case, UserError):
                console.print(f"{board}, {network}: {case}")
                continue
            figures = time_case(case, options, console)
            table.add_row(board, network, str(case.setup.config.network.width), *figures)
        console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agreement", action="store_true", help="measure agreement only")
    parser.add_argument("--speed", action="store_true", help="measure speed only")
    parser.add_argument("--boards", nargs="+", default=["connect_four", "hex:7", "breakthrough:6"], help="of agreement")
    parser.add_argument("--speed_boards", nargs="+", default=["connect_four"], help="default: connect_four")
    parser.add_argument(
        "--networks",
        nargs="+",
        metavar="NAME",
        choices=SPEED_NETWORKS,
        default=list(SPEED_NETWORKS),
        help="rows of the speed test, of: " + "; ".join(SPEED_NETWORKS),
    )
    parser.add_argument("--self_play", action="store_true", help="leaves out updates in the speed test")
    parser.add_argument(
        "--trace",
        action="store_true",
        help="lists the kernels of one iteration with updates; its loops wait for the host, else the list is empty",
    )
    parser.add_argument("--rules", nargs="*", default=["connect_four", "hex:7", "othello:8", "breakthrough:6", "go:7"])
    add_speed_flags(parser)
    options = parser.parse_args()
    if not options.trace:
        xla.keep_loops_on_gpu()
    console = Console(width=160)
    console.print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}")
    if options.agreement or not options.speed:
        agreement(options, console)
    if options.speed or not options.agreement:
        speed(options, console)


if __name__ == "__main__":
    main()
