"""Trained networks as StableHLO, for programs that know nothing of AlphaGAT."""

from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
from jax import export

from alphagat.agents.agent import Agent
from alphagat.agents.build import make_configured_network
from alphagat.networks.values import expected_value
from alphagat.runs.atomic_files import check_new

ENDING = ".stablehlo"
PLATFORMS = ("cpu", "cuda")


def write(file: Path, agent: Agent, batch_size: int | None = None) -> None:
    """Writes the network of `agent`, with its parameters and for its board, as what `jax.export.deserialize` reads.

    What is read maps features `[B, V, F]` float32, of `Game.observe`, to prior logits `[B, A]`, illegal actions not
    masked, and values `[B]`, for the player to move; on CPUs and on NVIDIA GPUs.

    Args:
      batch_size: B; None: any.

    Raises:
      UserError: the file exists, or its folder does not.
    """
    check_new(file, ENDING)
    game = agent.game
    network = make_configured_network(agent.config, game)

    def evaluate(nodes: jax.Array) -> tuple[jax.Array, jax.Array]:
        prior_logits, output = cast(tuple[Any, Any], network.apply(agent.params, nodes))
        return prior_logits, expected_value(output, network.value_support)

    (batch,) = export.symbolic_shape("b") if batch_size is None else (batch_size,)
    nodes = jax.ShapeDtypeStruct((batch, game.topology.num_nodes, game.num_features), jnp.float32)
    file.write_bytes(export.export(jax.jit(evaluate), platforms=PLATFORMS)(nodes).serialize())
