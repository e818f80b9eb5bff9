"""Serves a live view of a run: `alphagat watch runs/quickstart`."""

from collections.abc import Sequence
from pathlib import Path

from alphagat.cli import commands
from alphagat.cli.server_options import add_server, check_server
from alphagat.runtime import terminal
from alphagat.serving.hosts import listen

EXAMPLES = """\
Reads the run's files and computes on the CPU, so that it can start and end at any time beside the training.

examples:
  alphagat watch runs/quickstart
  alphagat watch runs/chess --board gardner_chess --simulations 64"""


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser("watch", epilog=EXAMPLES)
    commands.add_run(parser, help="the folder of the run")
    parser.add_argument("--board", help="the board of the games, e.g. hex:7 (default: those of the run, in turn)")
    add_server(parser)
    return parser


def watch(argv: Sequence[str]) -> None:
    """Serves until interrupted."""
    options = make_parser().parse_args(list(argv))
    folder = commands.required_run(options)
    options.sources = [folder]
    check_server(options)
    with listen(options.host, options.port) as listener:
        with terminal.status(commands.STARTING):
            import jax  # only after the flags are checked

            jax.config.update("jax_platforms", "cpu")  # leaves the accelerator to the run
            from alphagat.runtime import sharding

            sharding.configure_cpu_devices(1)
            from alphagat.serving.server import run_server

        run_server(options, listener, watched=Path(folder))


def run(argv: Sequence[str]) -> int:
    """Serves with the arguments `argv` (without the program's name) and returns the exit status."""
    return commands.run(watch, argv, interrupted="stopped")
