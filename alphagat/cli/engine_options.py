"""Defines and checks the options that the engine commands share, without importing JAX."""

import argparse
from typing import TYPE_CHECKING

from alphagat.bounds import MAX_SIMULATIONS, MAX_SYMMETRIES, Limits
from alphagat.cli import commands
from alphagat.errors import UserError

if TYPE_CHECKING:
    from alphagat.agents.agent import Agent
    from alphagat.serving.protocols.thinking import Thinker

SOURCES = """\
SOURCE is a run folder, one of its checkpoints (runs/1/checkpoints/40), a file of alphagat export, or the name of a
shipped network (default: the shipped network that plays the board)."""


def add_options(parser: commands.ArgumentParser, *, simulations: str, most: str, by_clock: str = "") -> None:
    """Adds the options of the player and of its search.

    Args:
      simulations: what `--simulations` sets; `by_clock` adds to its default.
      most: what `--max_simulations` sets.
    """
    commands.add_run(parser, metavar="SOURCE", help="the trained player, see below")
    parser.add_argument("--board", help="any board of the player's family (default: the first of its run)")
    limits = Limits(at_least=1, at_most=MAX_SIMULATIONS)
    help = f"{simulations} (default: evaluation.num_simulations of its run{by_clock})"
    commands.add_number(parser, "--simulations", int, limits, metavar="N", help=help)
    commands.add_number(parser, "--max_simulations", int, limits, default=4096, metavar="N", help=most)
    limits = Limits(at_least=1, at_most=MAX_SYMMETRIES)
    help = "images of a position, under symmetries of the board, whose evaluations are averaged"
    commands.add_number(parser, "--symmetries", int, limits, default=1, metavar="N", help=help)


def add_leaves(parser: commands.ArgumentParser) -> None:
    """Adds the options of a search of a single position."""
    help = "positions per call of the network (default: 1 on a CPU, else 8)"
    commands.add_number(parser, "--leaves", int, Limits(at_least=1, at_most=4096), metavar="K", help=help)
    parser.add_argument(
        "--new_trees",
        action="store_true",
        help="start each search with an empty tree, so that a move depends on its position only (default: reuse the "
        "tree of the previous search)",
    )


def check_options(options: argparse.Namespace) -> None:
    """Checks the options that the functions above add. Raises UserError."""
    if not (commands.named_run(options) or options.board):
        raise UserError("no player and no --board given; name one, such as --board hex:5")


def open_agent(options: argparse.Namespace, board: str | None) -> "Agent":
    """Loads the player for a board; None: the board of the options, else the first of the player's run.

    Raises:
      UserError: there is no such player, or it does not play the board.
    """
    from alphagat.agents.agent import load
    from alphagat.agents.sources import SHIPPED

    return load(commands.named_run(options) or SHIPPED, board=board or options.board, symmetries=options.symmetries)


def make_thinker(options: argparse.Namespace, board: str | None) -> "Thinker":
    """Loads the player for a board, like `open_agent`, and makes its search of a single position."""
    from alphagat.serving.protocols.thinking import Thinker

    agent = open_agent(options, board)
    simulations = options.simulations or agent.config.evaluation.num_simulations  # of a move without a clock
    most = max(options.max_simulations, simulations)
    return Thinker(agent, most, options.leaves, keeps_tree=not options.new_trees)
