"""Plays a checkpoint against an opponent: `alphagat evaluate DIR --opponent mcts:100`."""

import sys
from collections.abc import Sequence

from alphagat.bounds import MAX_ITERATIONS, Limits
from alphagat.cli import commands
from alphagat.runtime import terminal

EXAMPLES = """\
examples:
  alphagat evaluate runs/quickstart --opponent mcts:100 --games 200
  alphagat evaluate runs/quickstart --opponent mcts:1000 --simulations 128 --iteration 40"""


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser("evaluate", epilog=EXAMPLES)
    commands.add_run(parser, help="the run, or any trained player of alphagat match")
    parser.add_argument("--board", help="any board of the run's family (default: the run's first)")
    parser.add_argument("--opponent", default="mcts:100", help="any player of alphagat match (default: %(default)s)")
    commands.add_games(parser, default=200, help="an even number")
    commands.add_simulations(parser, help="simulations per move of the player (default: as in the run's evaluations)")
    steps = Limits(at_least=0, at_most=MAX_ITERATIONS)
    commands.add_number(parser, "--iteration", int, steps, help="which checkpoint (default: the latest)")
    commands.add_seed(parser, help="random seed of openings and opponent")
    return parser


def evaluate(argv: Sequence[str]) -> None:
    """Plays the match that `argv` describes and prints its result in one line."""
    options = make_parser().parse_args(list(argv))
    player = commands.required_run(options)
    commands.check_even("--games", options.games)
    with terminal.status(commands.STARTING):
        from alphagat.runtime import sharding  # JAX is imported only after the flags were checked

        sharding.configure_cpu_devices(0)
        from alphagat.contests import match
        from alphagat.contests.match_options import Settings

    settings = Settings(options.games, options.seed)
    line = match.evaluate(player, options.iteration, options.board, options.simulations, options.opponent, settings)
    sys.stdout.write(line + "\n")


def run(argv: Sequence[str]) -> int:
    """Runs the command with `argv`, without the program's name, and returns the exit status."""
    return commands.run(evaluate, argv)
