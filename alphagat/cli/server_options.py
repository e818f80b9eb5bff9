"""The flags of the commands that serve web pages: `play` and `watch`."""

import argparse
import re

from alphagat.bounds import Number
from alphagat.cli import commands
from alphagat.errors import UserError
from alphagat.serving.limits import FLAGS

HOST_NAME = re.compile("[a-zA-Z0-9._-]+")


def add_server(parser: commands.ArgumentParser, simulations: int) -> None:
    """Adds the flags of the server; `simulations` is the default number per move."""
    parser.add_argument(
        "--simulations",
        action=Number,
        kind=int,
        limits=FLAGS["simulations"],
        default=simulations,
        help="initial number of simulations per move; 0: the network alone (default: %(default)s)",
    )
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


def check_server(options: argparse.Namespace) -> None:
    """Checks the flags of the server. Raises UserError."""
    if options.board == "":
        raise UserError("--board is empty; name one, such as hex:7, or leave it out")
    if not options.host.strip():
        raise UserError(f"--host '{options.host}': it must be an address; 0.0.0.0 means all interfaces")
    for name in options.allowed_hosts:
        if not HOST_NAME.fullmatch(name):
            raise UserError(
                f"--allowed_hosts {name}: it must be a host name such as play.example.org, without scheme or port"
            )
