"""Exports trained networks as StableHLO, for programs without AlphaGAT."""

from pathlib import Path
from typing import Any, cast

import jax
from jax import export

from alphagat.agents.agent import Agent
from alphagat.agents.build import input_shapes, make_portable_network
from alphagat.networks.values import expected_value
from alphagat.runs.atomic_files import check_new, write_atomically

ENDING = ".stablehlo"
PLATFORMS = ("cpu", "cuda")


def write(file: Path, agent: Agent, batch_size: int | None = None) -> None:
    """Writes the network of `agent`, with its parameters, for one board; `jax.export.deserialize` reads the file.

    The program runs on CPUs and NVIDIA GPUs. It maps features `[B, V, F]` float32 (`Game.observe`) to prior logits
    `[B, A]`, with illegal actions unmasked, and values `[B]`, both from the perspective of the player to move. Where
    edges differ between positions, the edges `[B, V, V, R]` float32 (`Game.edges`) are its second argument.

    Args:
      batch_size: B; None: any number.

    Raises:
      UserError: the file exists, or its folder does not exist.
    """
    check_new(file, ENDING)
    game = agent.game
    network = make_portable_network(agent.config, game)

    def evaluate(*inputs: jax.Array) -> tuple[jax.Array, jax.Array]:
        prior_logits, output = cast(tuple[Any, Any], network.apply(agent.params, *inputs))
        return prior_logits, expected_value(output, network.value_support)

    (batch,) = export.symbolic_shape("b") if batch_size is None else (batch_size,)
    inputs = [shape for shape in input_shapes(game, batch) if shape is not None]
    write_atomically(file, bytes(export.export(jax.jit(evaluate), platforms=PLATFORMS)(*inputs).serialize()))
