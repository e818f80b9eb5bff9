"""Writes a trained network to one file: `alphagat export runs/hex --out hex.safetensors`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from alphagat.bounds import MAX_BATCH, MAX_ITERATIONS, Limits
from alphagat.cli import commands
from alphagat.errors import UserError
from alphagat.wording import sized

if TYPE_CHECKING:
    from alphagat.agents.agent import Agent

EXAMPLES = """\
The ending of the file decides its format:
  .safetensors  the parameters, float32, and the config of the run, for alphagat.load, config.init_from and
                alphagat match
  .stablehlo    the network on one board as a program for CPUs and NVIDIA GPUs: features [B, V, F] to prior logits
                [B, A] and values [B], for jax.export.deserialize, without AlphaGAT

examples:
  alphagat export runs/hex --out hex.safetensors --card hex.md
  alphagat export runs/hex --out hex7.stablehlo --board hex:7
  alphagat export runs/hex_second --average runs/hex --out hex.safetensors
  alphagat match hex.safetensors mcts:1000 --board hex:9"""


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser("export", "The training state is left out.", EXAMPLES)
    commands.add_run(parser, help="the run, or the name of a shipped network")
    parser.add_argument("--out", required=True, metavar="FILE", help="a new file, ending in .safetensors or .stablehlo")
    steps, sizes = Limits(at_least=0, at_most=MAX_ITERATIONS), Limits(at_least=1, at_most=MAX_BATCH)
    commands.add_number(parser, "--iteration", int, steps, help="the checkpoint (default: the latest)")
    parser.add_argument("--board", help="board of a .stablehlo file (default: the run's first)")
    help = "batch size of a .stablehlo file (default: any)"
    commands.add_number(parser, "--batch", int, sizes, metavar="B", help=help)
    parser.add_argument("--precision", help="precision of the blocks, such as float32 (default: as in training)")
    parser.add_argument(
        "--average",
        nargs="+",
        metavar="SOURCE",
        default=(),
        help="networks to average with RUN; they must share an ancestor: one continued the other, or all a third",
    )
    parser.add_argument("--card", metavar="FILE", help="a new file for the model card, ending in .md")
    return parser


def export(argv: Sequence[str]) -> None:
    """Writes the files that `argv` describes and prints their size."""
    options = make_parser().parse_args(list(argv))
    player, file = commands.required_run(options), Path(options.out)
    # JAX is imported only after the flags were checked
    from alphagat.agents import model_card, stablehlo, weight_files
    from alphagat.agents.agent import load
    from alphagat.agents.average import average
    from alphagat.runs import atomic_files

    atomic_files.check_new(file, weight_files.ENDING, stablehlo.ENDING)
    if file.suffix == weight_files.ENDING and (options.board or options.batch):
        raise UserError(
            f"--out {file} works for all boards and batch sizes; leave out --board and --batch, or name a .stablehlo"
        )
    if options.card:
        atomic_files.check_new(Path(options.card), model_card.ENDING)
    agent = load(player, options.iteration, options.board, options.precision)
    if options.average:
        agent = average(agent, options.average)
    if file.suffix == stablehlo.ENDING:
        stablehlo.write(file, agent, options.batch)
    else:
        weight_files.write(file, agent.params, agent.config, agent.iteration)
    if options.card:
        _write_card(Path(options.card), agent, file.name, player, options.average or ())
    sys.stdout.write(f"{file}: iteration {agent.iteration} of {player}, {sized(file.stat().st_size)}\n")


def _write_card(card: Path, agent: "Agent", exported: str, player: str, averaged: Sequence[str]) -> None:
    from alphagat.agents import model_card
    from alphagat.agents.sources import find_run
    from alphagat.monitoring.metric_text import describe_results
    from alphagat.runs.metrics import RESULTS, last_evaluation, read_metrics

    run = find_run(Path(player))
    lines = read_metrics(run.folder) if run and not averaged else []  # nobody has measured a mean
    measured = None
    if evaluation := last_evaluation(lines, agent.iteration):
        results = describe_results(evaluation[RESULTS], agent.config.boards)
        rows = [(each.label, each.value_and_interval) for each in results]
        measured = model_card.Measured(evaluation["iteration"], rows)
    model_card.write(card, agent, exported, lines, measured, averaged)


def run(argv: Sequence[str]) -> int:
    """Runs the command with `argv`, without the program's name, and returns the exit status."""
    return commands.run(export, argv)
