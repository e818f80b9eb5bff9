"""Trains or resumes a run: `python -m alphagat.main --config configs/quickstart.py --workdir runs/quickstart`."""

import sys
from collections.abc import Sequence

import alphagat
from alphagat import commands
from alphagat.runtime import distributed, preemption, xla

DESCRIPTION = "Trains AlphaGAT on a board by self-play. Run the same command again to resume."
EXAMPLES = """\
examples:
  python -m alphagat.main --config configs/quickstart --workdir runs/quickstart
  python -m alphagat.main --config configs/connect_four --workdir runs/c4 --config.search.num_simulations=64
  python -m alphagat.main --config configs/quickstart --workdir runs/x --config.evaluation.opponents=random,mcts:50"""


def train(argv: Sequence[str]) -> None:
    arguments = commands.training_arguments(argv, description=DESCRIPTION, examples=EXAMPLES)
    xla.use_flags(arguments.xla)
    distributed.connect(arguments.nodes, arguments.node_rank, arguments.coordinator)
    alphagat.train(arguments.config, arguments.workdir, profile=arguments.profile)


def run(argv: Sequence[str]) -> int:
    """Trains with the arguments `argv` (without the program's name) and returns the exit status."""
    interrupted = "interrupted; run the same command to resume from the last checkpoint"
    with preemption.listening():  # before JAX is loaded
        return commands.run(train, argv, interrupted=interrupted)


if __name__ == "__main__":
    commands.end(run(sys.argv[1:]))
