"""Serves a web page for playing against networks: `alphagat play`."""

from collections.abc import Sequence

from alphagat.cli import commands
from alphagat.cli.server_options import add_server, check_server
from alphagat.runtime import terminal
from alphagat.serving.hosts import listen

EXAMPLES = """\
Without RUN, the networks of the package play (Hex, Connect Four, tic-tac-toe, gomoku, Othello, Breakthrough, Go, chess
and Gardner chess, 2048, tours through cities), and the runs in the folder runs.

examples:
  alphagat play
  alphagat play --board hex:11 --simulations 256
  alphagat play runs/chess --port 8080
  alphagat play runs/hex shipped --board hex:7"""


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser("play", epilog=EXAMPLES)
    commands.add_runs(parser, help="folders of runs, files of alphagat export, or shipped networks")
    parser.add_argument("--board", help="the initial board, e.g. hex:7 (default: the first of the first run)")
    add_server(parser)
    return parser


def play(argv: Sequence[str]) -> None:
    """Serves until interrupted."""
    options = make_parser().parse_args(list(argv))
    options.sources = commands.named_runs(options)
    check_server(options)
    with listen(options.host, options.port) as listener:
        with terminal.status(commands.STARTING):
            from alphagat.runtime import sharding  # JAX is imported only after the flags are checked

            sharding.configure_cpu_devices(1)
            from alphagat.serving.server import run_server

        run_server(options, listener)


def run(argv: Sequence[str]) -> int:
    """Serves with the arguments `argv` (without the program's name) and returns the exit status."""
    return commands.run(play, argv, interrupted="stopped")
