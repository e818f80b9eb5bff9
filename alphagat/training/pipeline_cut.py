"""Cuts a network into pipeline stages by the compiler's estimates of computation and memory."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import optax

from alphagat.agents.build import input_shapes
from alphagat.config import Config
from alphagat.games.base import Game
from alphagat.networks import Network
from alphagat.networks.gat import GraphAttentionNetwork, make_block
from alphagat.networks.pipeline import PipelinedNetwork, count_parts, cut_blocks
from alphagat.runtime.memory import memory_limit, memory_needed


class Cost(NamedTuple):
    """The cost of a part of a network.

    Attributes:
      flops: floating-point operations, forward and backward.
      memory: bytes of parameters, gradients, inputs and intermediates.
    """

    flops: float
    memory: float


def pipeline(config: Config, game: Game, network: Network) -> PipelinedNetwork:
    """Returns the network cut into `mesh.stage` stages.

    Among the cuts whose stages fit into device memory, minimizes the computation of the slowest stage. If none fits,
    minimizes the memory of the largest stage.
    """
    assert isinstance(network, GraphAttentionNetwork)
    first, blocks, last = measure_parts(config, game, network)
    limit, num_blocks = memory_limit(config.mesh.memory_gb), network.num_blocks

    def of_stage(name: str, start: int, stop: int) -> float:
        ends = (start == 0) * getattr(first, name) + (stop == num_blocks) * getattr(last, name)
        return sum(getattr(block, name) for block in blocks[start:stop]) + ends

    def flops_where_it_fits(start: int, stop: int) -> float:
        fits = of_stage("memory", start, stop) <= limit
        return of_stage("flops", start, stop) if fits else math.inf

    worst, counts = cut_blocks(num_blocks, config.mesh.stage, flops_where_it_fits)
    if math.isinf(worst):
        _, counts = cut_blocks(num_blocks, config.mesh.stage, functools.partial(of_stage, "memory"))
    return PipelinedNetwork(network, counts)


def measure_parts(config: Config, game: Game, network: GraphAttentionNetwork) -> tuple[Cost, list[Cost], Cost]:
    """Returns the costs of the embedding, each block and the heads on one micro-batch of a group; blocks of a kind cost
    the same.
    """
    batch = config.learner.batch_size // config.selfplay.num_groups
    batch //= count_parts(batch, config.mesh.stage)
    nodes, edges = input_shapes(game, batch)
    params = jax.eval_shape(network.init, jax.random.key(0), nodes)

    def embed(params: Any, nodes: jax.Array) -> Any:
        return network.apply(params, nodes, method="embed")

    def read_out(params: Any, hidden: jax.Array) -> Any:
        return network.apply(params, hidden, method="read_out")

    parts = params["params"]
    hidden = jax.eval_shape(embed, params, nodes)
    kinds = network.kinds_of_blocks
    by_kind = {
        kind: _measure(make_block(network, kind).apply, {"params": parts[f"block_{kinds.index(kind)}"]}, hidden, edges)
        for kind in set(kinds)
    }
    return (
        _measure(embed, {"params": {name: parts[name] for name in ("features", "kinds")}}, nodes),
        [by_kind[kind] for kind in kinds],
        _measure(read_out, {"params": {name: parts[name] for name in ("norm", "policy", "value")}}, hidden),
    )


def _measure(apply: Callable, params: Any, *inputs: Any) -> Cost:
    def total(params: Any, *inputs: Any) -> jax.Array:
        return optax.tree.norm(apply(params, *inputs), squared=True)

    program = jax.jit(jax.grad(total, argnums=(0, 1))).lower(params, *inputs).compile()
    return Cost(float((program.cost_analysis() or {}).get("flops", 0.0)), memory_needed(program))
