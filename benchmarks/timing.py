"""Timing, and runs of one board, shared by the benchmarks."""

import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import jax
from jax.sharding import Mesh

from alphagat.config import Config
from alphagat.networks import Network
from alphagat.networks.placement import place_params
from alphagat.runtime.cpu_cache import map_in_parts
from alphagat.training.iteration import make_iteration, program_arguments, run_iteration
from alphagat.training.setup import make_run
from alphagat.training.state import RunState, init_state

Name = TypeVar("Name")
ROUNDS = 7


def take_turns(calls: Mapping[Name, Callable[[], Any]], rounds: int) -> dict[Name, list[float]]:
    """Returns the seconds of each call in each round, until its result is ready.

    The calls alternate, so that a drifting machine speed favours none. A round before the first one is not counted: it
    compiles.
    """
    seconds: dict[Name, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            jax.block_until_ready(call())
            if number:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def median_seconds(call: Callable[[], Any]) -> float:
    """Returns the median seconds of `ROUNDS` calls, after one that is not counted."""
    return statistics.median(take_turns({None: call}, ROUNDS)[None])


def median_ratio(values: Sequence[float], others: Sequence[float]) -> float:
    """Returns the median of the ratios of two measurements in each round."""
    return statistics.median(one / other for one, other in zip(values, others, strict=True))


def repeat_evaluation(network: Network, params: Any, nodes: jax.Array, times: int) -> Callable[[], jax.Array]:
    """Returns a program that evaluates `[B, V, F]` nodes in a loop; each pass depends on the one before.

    On a CPU, a batch is computed in parts that fit into the cache, as in self-play.
    """

    def evaluate(params: Any, nodes: jax.Array) -> jax.Array:
        params = place_params(network, params)

        def once(nodes: jax.Array, _: None) -> tuple[jax.Array, None]:
            logits, value = map_in_parts(lambda part: network.apply(params, part), nodes)
            return nodes + 0 * (logits.mean() + value.mean()), None

        return jax.lax.scan(once, nodes, length=times)[0]

    return functools.partial(jax.jit(evaluate), params, nodes)


class OneBoardRun:
    """A run of one board, whose devices both play and learn; its `state` is that after the last iteration."""

    def __init__(self, config: Config, mesh: Mesh):
        self.run = make_run(config, mesh)
        (self.setup,) = self.run.boards
        self.state = init_state(self.run)
        self._program = make_iteration(self.setup, mesh).lower(*program_arguments(self.state)).compile()

    def iterate(self) -> RunState:
        """Starts an iteration, which consumes the state, and returns the next one without waiting for it."""
        self.state, *_ = run_iteration(self._program, self.state)
        return self.state

    def warm_up(self, num_updating: int) -> None:
        """Runs the iterations before the first updates, and then `num_updating` with them."""
        for _ in range(self.setup.plan.first_update_iteration + num_updating):
            self.iterate()
