"""The options that the engines' commands share; nothing heavy is loaded before they were found right."""

import argparse
from typing import Any

from alphagat.errors import UserError

SOURCES = """\
SOURCE is a run folder, one of its checkpoints (runs/1/checkpoints/40), a file of alphagat.export, or the name of a
network that comes with the package; without it, the one of the package that plays the board."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds what names the player and how hard it thinks."""
    parser.add_argument("source", nargs="?", metavar="SOURCE", help="the trained player, see below")
    parser.add_argument("--workdir", metavar="FOLDER", help="the same as SOURCE")
    parser.add_argument("--board", help="any of the family of the player's boards (default: the first of its run)")
    parser.add_argument(
        "--simulations", type=int, metavar="N", help="for a move (default: as in its run's evaluations)"
    )
    parser.add_argument(
        "--max_simulations",
        type=int,
        default=4096,
        metavar="N",
        help="that the memory of a search is made for, where a clock or an analysis decides (default: %(default)s)",
    )


def add_leaves(parser: argparse.ArgumentParser) -> None:
    """Adds how a search of a single position uses the device."""
    parser.add_argument(
        "--leaves", type=int, metavar="K", help="positions per call of the network (default: 1 on a CPU, else 8)"
    )
    parser.add_argument(
        "--new_trees",
        action="store_true",
        help="begin each search anew, so that a move depends on its position alone; else what was searched of it "
        "before is kept, and counts",
    )


def check_options(options: argparse.Namespace) -> None:
    """Checks what the functions above have added. Raises UserError."""
    if options.source and options.workdir:
        raise UserError(f"--workdir {options.workdir}: {options.source} names a player already; take one of them")
    if not (options.source or options.workdir or options.board):
        raise UserError("neither a player nor a --board is named; name one, such as --board hex:5")
    for name in ("simulations", "max_simulations", "leaves"):
        value = getattr(options, name, None)
        if value is not None and value < 1:
            raise UserError(f"--{name} {value}: take at least 1")
    options.max_simulations = max(options.max_simulations, options.simulations or 1)


def open_agent(options: argparse.Namespace, board: str | None) -> Any:
    """Loads the player (`training.agent.Agent`) for a board; None: the one of the options.

    Raises:
      UserError: there is no such player, or it does not play the board.
    """
    from alphagat.contests.contenders import load_agent

    source = options.source or options.workdir or "shipped"
    agent = load_agent(source, board or options.board)
    if agent is None:
        raise UserError(f"player {source!r}: there is no such run, file or network of the package; see --help")
    return agent
