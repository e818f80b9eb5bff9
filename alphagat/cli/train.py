"""Trains or resumes a run: `alphagat train quickstart`."""

import sys
from collections.abc import Sequence

import alphagat
from alphagat.cli import commands, training_arguments
from alphagat.runtime import distributed, preemption, terminal, xla

EXAMPLES = """\
examples:
  alphagat train quickstart
  alphagat train runs/quickstart                # resumes it with its own config
  alphagat train connect_four --workdir runs/c4 --config.search.num_simulations=64
  alphagat train mine.py --config.evaluation.opponents=random,mcts:50"""


def make_parser() -> commands.ArgumentParser:
    return training_arguments.make_parser(
        "train", "To resume a run, repeat the command, or name the folder of the run.", EXAMPLES
    )


def train(argv: Sequence[str]) -> None:
    arguments = training_arguments.read(make_parser(), argv)
    if sys.stderr.isatty():
        terminal.say("loading JAX ...")  # which takes seconds, and more at the first start
    xla.use_flags(arguments.xla)
    distributed.connect(arguments.nodes, arguments.node_rank, arguments.coordinator)
    alphagat.train(arguments.config, arguments.workdir, profile=arguments.profile)


def run(argv: Sequence[str]) -> int:
    """Trains with the arguments `argv` (without the program's name) and returns the exit status."""
    with preemption.listening():  # before JAX is loaded
        return commands.run(train, argv, interrupted=training_arguments.INTERRUPTED)
