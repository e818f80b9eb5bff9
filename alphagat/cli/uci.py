"""Runs a UCI chess engine on standard input and output: `alphagat uci runs/chess`."""

from collections.abc import Sequence

import alphagat
from alphagat.cli import commands, engine_options
from alphagat.errors import UserError
from alphagat.runtime import terminal

EXAMPLES = f"""\
{engine_options.SOURCES}

examples:
  alphagat uci                                # the shipped chess network
  alphagat uci runs/chess --simulations 200
  alphagat uci chess.safetensors"""


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser("uci", epilog=EXAMPLES)
    engine_options.add_options(
        parser,
        simulations="simulations of a move without a clock",
        most="maximum simulations of go nodes, and of a search with a clock or without a limit",
    )
    engine_options.add_leaves(parser)
    return parser


def uci(argv: Sequence[str]) -> None:
    """Answers commands until `quit` or the end of input."""
    options = make_parser().parse_args(list(argv))
    options.board = options.board or "chess"
    engine_options.check_options(options)
    if options.board != "chess":
        raise UserError(f"board {options.board}: UCI is for chess only; see alphagat gtp")
    with terminal.status(commands.STARTING):
        from alphagat.serving.protocols.line_reader import standard_streams
        from alphagat.serving.protocols.uci_server import UciServer  # JAX is imported only after the flags are checked

    with terminal.status(commands.LOADING):
        thinker = engine_options.make_thinker(options, None)
    UciServer(thinker, options.simulations, alphagat.__version__).serve(*standard_streams())


def run(argv: Sequence[str]) -> int:
    """Runs the engine with the arguments `argv` (without the program's name) and returns the exit status."""
    return commands.run(uci, argv)
