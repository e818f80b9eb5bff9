"""Runs a GTP engine on standard input and output: `alphagat gtp --board hex:7`."""

import functools
from collections.abc import Sequence

import alphagat
from alphagat.cli import commands, engine_options
from alphagat.runtime import terminal

EXAMPLES = f"""\
{engine_options.SOURCES}

examples:
  alphagat gtp --board hex:7 --simulations 200
  alphagat gtp runs/go --board go:9
  gogui-twogtp -black 'alphagat gtp runs/go' -white 'gnugo --mode gtp' -size 9"""


def make_parser() -> commands.ArgumentParser:
    details = "It plays Go, Hex, Othello, Connect Four and other two-player games with one-word moves."
    parser = commands.ArgumentParser("gtp", details, EXAMPLES)
    engine_options.add_options(
        parser,
        simulations="simulations per move",
        by_clock="; with a clock, as time allows",
        most="maximum simulations of a search with a clock or of an open-ended analysis",
    )
    engine_options.add_leaves(parser)
    return parser


def gtp(argv: Sequence[str]) -> None:
    """Answers commands until `quit` or the end of input."""
    options = make_parser().parse_args(list(argv))
    engine_options.check_options(options)
    with terminal.status(commands.STARTING):
        from alphagat.serving.protocols.gtp_server import GtpServer  # JAX is imported only after the flags are checked
        from alphagat.serving.protocols.line_reader import standard_streams

    make_thinker = functools.partial(engine_options.make_thinker, options)
    with terminal.status(commands.LOADING):
        thinker = make_thinker(None)
    server = GtpServer(make_thinker, thinker, options.simulations, alphagat.__version__)
    server.serve(*standard_streams())


def run(argv: Sequence[str]) -> int:
    """Runs the engine with the arguments `argv` (without the program's name) and returns the exit status."""
    return commands.run(gtp, argv)
