"""A card for an exported network, in the form that Hugging Face reads: YAML between rules, then Markdown."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax

from alphagat import config_fields
from alphagat.agents import stablehlo
from alphagat.agents.agent import Agent
from alphagat.agents.build import input_shapes
from alphagat.runs.atomic_files import write_atomically
from alphagat.runs.metrics import Line
from alphagat.wording import counted

ENDING = ".md"
FRONT_MATTER = """\
---
license: apache-2.0
library_name: alphagat
pipeline_tag: reinforcement-learning
tags:
- alphazero
- graph-attention
- jax
- board-games
- "{family}"
---
"""
LOAD = """\
    import alphagat

    agent = alphagat.load("{file}")
    player = agent.player(num_simulations=64)
"""
DESERIALIZE = """\
    import jax

    network = jax.export.deserialize(bytearray(open("{file}", "rb").read()))
    prior_logits, values = network.call({arguments})  # {shapes}, float32, of the board {board}
"""


class Measured(NamedTuple):
    """The results of an evaluation after an iteration, as labels and values."""

    iteration: int
    rows: Sequence[tuple[str, str]]


def write(
    file: Path,
    agent: Agent,
    exported: str,
    lines: Sequence[Line],
    measured: Measured | None,
    averaged: Sequence[str] = (),
) -> None:
    """Writes the card of the file `exported`; `file` must be new and end in .md (`atomic_files.check_new`).

    Args:
      lines: those of `metrics.jsonl`; empty without a run, or for a mean.
      averaged: the other networks, if the parameters are a mean.
    """
    parts = (part.strip("\n") for part in _parts(agent, exported, lines, measured, averaged))
    write_atomically(file, "\n\n".join(parts) + "\n")


def _parts(
    agent: Agent, exported: str, lines: Sequence[Line], measured: Measured | None, averaged: Sequence[str]
) -> list[str]:
    config, game = agent.config, agent.game
    family, boards = game.family, ", ".join(config.boards)
    size = sum(leaf.size for leaf in jax.tree.leaves(agent.params))
    here = next((each for each in lines if each["iteration"] == agent.iteration), {})
    reached = [f"iteration {agent.iteration}"]
    reached += [f"{here['frames']:,.0f} frames"] if "frames" in here else []
    reached += [f"{here['hours']:.2f} hours"] if "hours" in here else []
    network = config.network
    mean = f" Its parameters are the mean of those of this iteration and of {', '.join(averaged)}." if averaged else ""
    parts = [
        FRONT_MATTER.format(family=family),
        f"# {Path(exported).stem}",
        f"A network of AlphaGAT for {boards}: {network.name}, {size:,} parameters "
        f"(width {network.width}, {network.num_blocks} blocks), after {', '.join(reached)}.{mean}",
        "## Use",
        _use(agent, exported),
    ]
    if measured and measured.rows:
        simulations = config.evaluation.num_simulations
        parts += [
            "## Results",
            f"Measured after iteration {measured.iteration}, with {counted(simulations, 'simulation')} per move; "
            "95% intervals in brackets.",
            _table(("", ""), measured.rows),
        ]
    changed = [(f"`{field.path}`", f"`{field.value}`") for field, _ in config_fields.changes(config)]
    return [*parts, "## Config", "What differs from the defaults:", _table(("field", "value"), changed)]


def _use(agent: Agent, exported: str) -> str:
    if not exported.endswith(stablehlo.ENDING):
        return LOAD.format(file=exported)
    game = agent.game
    inputs = {name: each.shape[1:] for name, each in zip(("features", "edges"), input_shapes(game, 1)) if each}
    shapes = ", ".join(f"{name} [B, {', '.join(map(str, shape))}]" for name, shape in inputs.items())
    return DESERIALIZE.format(file=exported, arguments=", ".join(inputs), shapes=shapes, board=game.name)


def _table(head: tuple[str, str], rows: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---", "---"), *rows))
