"""Serves the page on which people play against a network: `python -m alphagat.serve`."""

import sys
from collections.abc import Sequence

from alphagat import commands
from alphagat.errors import UserError

MAX_PORT, MAX_SIMULATIONS = 65_535, 4_096
EXAMPLES = """\
Without --workdir the networks play that come with the package: Connect Four, and Hex and Othello of any size.

examples:
  python -m alphagat.serve
  python -m alphagat.serve --board hex:11 --simulations 256
  python -m alphagat.serve --workdir runs/chess --port 8080"""


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser(
        prog="python -m alphagat.serve",
        description="Serves a page on which people play against a network and see what it thinks.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--workdir", metavar="FOLDER", help="the folder of a run, or a file of alphagat.export")
    parser.add_argument("--board", help="the board to begin with, e.g. hex:7 (default: the first of the run)")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 for all networks (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="0: any free one (default: %(default)s)")
    parser.add_argument("--simulations", type=int, default=64, help="for a move, at first (default: %(default)s)")
    parser.add_argument("--max_batch", type=int, default=64, help="positions at once (default: %(default)s)")
    parser.add_argument(
        "--max_wait_ms", type=float, default=10.0, help="for clients who ask again (default: %(default)s)"
    )
    parser.add_argument("--max_queue", type=int, default=256, help="more are refused (default: %(default)s)")
    return parser


def serve(argv: Sequence[str]) -> None:
    """Serves as `argv` says until it is interrupted."""
    options = make_parser().parse_args(list(argv))
    _check(options)
    from alphagat.runtime import sharding  # JAX is imported only after the flags were found right

    sharding.configure_cpu_devices(1)
    from alphagat.serving.server import run_server

    run_server(options)


def _check(options) -> None:
    if not 0 <= options.port <= MAX_PORT:
        raise UserError(f"--port {options.port}: take 0 to {MAX_PORT}")
    if not 0 <= options.simulations <= MAX_SIMULATIONS:
        raise UserError(f"--simulations {options.simulations}: take 0 (the network alone) to {MAX_SIMULATIONS}")


def run(argv: Sequence[str]) -> int:
    """Serves as `argv` (without the program's name) says and returns the exit status."""
    return commands.run(serve, argv, interrupted="stopped")


if __name__ == "__main__":
    commands.end(run(sys.argv[1:]))
