"""The flags of the commands that serve web pages: `play` and `watch`."""

import argparse
import functools
import re

from alphagat.bounds import Number
from alphagat.cli import commands
from alphagat.errors import UserError
from alphagat.serving.limits import FLAGS

HOST_NAME = re.compile(r"[a-zA-Z0-9._-]*[a-zA-Z0-9_-]\.?")


def add_server(parser: commands.ArgumentParser, simulations: int) -> None:
    """Adds the flags of the server; `simulations` is the default number per move."""
    add_number = functools.partial(_add_number, parser)
    add_number("simulations", int, simulations, "initial number of simulations per move; 0: the network alone")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0: all interfaces (default: %(default)s)")
    parser.add_argument(
        "--allowed_hosts",
        action="append",
        default=[],
        metavar="NAME",
        help="a host name of this server, besides localhost; repeatable",
    )
    add_number("port", int, 8000, "0: any free port")
    add_number("max_batch", int, 64, "positions per batch")
    add_number("max_wait_ms", float, 10.0, "time to wait for a fuller batch")
    add_number("max_queue", int, 256, "requests that may wait")


def _add_number(parser: commands.ArgumentParser, name: str, kind: type, default: float, help: str) -> None:
    """Adds one of the numbers that `limits.FLAGS` bounds."""
    help = f"{help} (default: %(default)s)"
    parser.add_argument(f"--{name}", action=Number, kind=kind, limits=FLAGS[name], default=default, help=help)


def check_server(options: argparse.Namespace) -> None:
    """Checks the flags of the server. Raises UserError."""
    if not options.host.strip():
        raise UserError(f"--host '{options.host}': it must be an address; 0.0.0.0 means all interfaces")
    for name in options.allowed_hosts:
        if not HOST_NAME.fullmatch(name):
            raise UserError(
                f"--allowed_hosts {name}: it must be a host name such as play.example.org, without scheme or port"
            )
