"""Serves a web page for playing against a network: `alphagat play`."""

import re
from collections.abc import Sequence

from alphagat.bounds import Number
from alphagat.cli import commands
from alphagat.errors import UserError
from alphagat.serving.limits import FLAGS

HOST_NAME = re.compile("[a-zA-Z0-9._-]+")
EXAMPLES = """\
Without RUN, the networks of the package play: Connect Four, and Hex and Othello of any size.

examples:
  alphagat play
  alphagat play --board hex:11 --simulations 256
  alphagat play runs/chess --port 8080"""


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser("play", epilog=EXAMPLES)
    commands.add_run(parser, help="the folder of a run, or a file of alphagat export")
    parser.add_argument("--board", help="the initial board, e.g. hex:7 (default: the first of the run)")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0: all interfaces (default: %(default)s)")
    parser.add_argument(
        "--allowed_hosts", nargs="+", default=[], metavar="NAME", help="host names of this server, besides localhost"
    )
    parser.add_argument(
        "--port",
        action=Number,
        kind=int,
        limits=FLAGS["port"],
        default=8000,
        help="0: any free port (default: %(default)s)",
    )
    parser.add_argument(
        "--simulations",
        action=Number,
        kind=int,
        limits=FLAGS["simulations"],
        default=64,
        help="initial number of simulations per move; 0: the network alone (default: %(default)s)",
    )
    parser.add_argument(
        "--max_batch",
        action=Number,
        kind=int,
        limits=FLAGS["max_batch"],
        default=64,
        help="positions per batch (default: %(default)s)",
    )
    parser.add_argument(
        "--max_wait_ms",
        action=Number,
        kind=float,
        limits=FLAGS["max_wait_ms"],
        default=10.0,
        help="time to wait for a fuller batch (default: %(default)s)",
    )
    parser.add_argument(
        "--max_queue",
        action=Number,
        kind=int,
        limits=FLAGS["max_queue"],
        default=256,
        help="requests that may wait (default: %(default)s)",
    )
    return parser


def play(argv: Sequence[str]) -> None:
    """Serves until interrupted."""
    options = make_parser().parse_args(list(argv))
    options.workdir = commands.named_run(options)
    _check(options)
    from alphagat.runtime import sharding  # JAX is imported only after the flags are checked

    sharding.configure_cpu_devices(1)
    from alphagat.serving.server import run_server

    run_server(options)


def _check(options) -> None:
    if options.board == "":
        raise UserError("--board is empty; name one, such as hex:7, or leave it out")
    if not options.host.strip():
        raise UserError(f"--host '{options.host}': it must be an address; 0.0.0.0 means all interfaces")
    for name in options.allowed_hosts:
        if not HOST_NAME.fullmatch(name):
            raise UserError(
                f"--allowed_hosts {name}: it must be a host name such as play.example.org, without scheme or port"
            )


def run(argv: Sequence[str]) -> int:
    """Serves with the arguments `argv` (without the program's name) and returns the exit status."""
    return commands.run(play, argv, interrupted="stopped")
