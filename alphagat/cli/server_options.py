"""The flags of the commands that serve web pages: `play` and `watch`."""

import argparse
import re

from alphagat.cli import commands
from alphagat.errors import UserError
from alphagat.serving.limits import FLAGS

HOST_NAME = re.compile(r"[a-zA-Z0-9._-]*[a-zA-Z0-9_-]\.?")


def add_server(parser: commands.ArgumentParser) -> None:
    """Adds the flags of the server."""
    help = "initial number of simulations per move; 0: the network alone"
    commands.add_number(parser, "--simulations", int, FLAGS["simulations"], default=16, help=help)
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0: all interfaces (default: %(default)s)")
    parser.add_argument(
        "--allowed_hosts",
        action="append",
        default=[],
        metavar="NAME",
        help="a host name of this server, besides localhost; repeatable",
    )
    commands.add_number(parser, "--port", int, FLAGS["port"], default=8000, help="0: any free port")
    commands.add_number(parser, "--max_batch", int, FLAGS["max_batch"], default=64, help="positions per batch")
    help = "time to wait for a fuller batch"
    commands.add_number(parser, "--max_wait_ms", float, FLAGS["max_wait_ms"], default=10.0, help=help)
    commands.add_number(parser, "--max_queue", int, FLAGS["max_queue"], default=256, help="requests that may wait")


def check_server(options: argparse.Namespace) -> None:
    """Checks the flags of the server. Raises UserError."""
    if not options.host.strip():
        raise UserError(f"--host '{options.host}': it must be an address; 0.0.0.0 means all interfaces")
    for name in options.allowed_hosts:
        if not HOST_NAME.fullmatch(name):
            raise UserError(
                f"--allowed_hosts {name}: it must be a host name such as play.example.org, without scheme or port"
            )
