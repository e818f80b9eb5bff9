"""Analyzes positions read as JSON lines from standard input: `alphagat analyze --board hex:7`."""

from collections.abc import Sequence

from alphagat.bounds import Limits
from alphagat.cli import commands, engine_options
from alphagat.runtime import terminal

EXAMPLES = f"""\
{engine_options.SOURCES}

examples:
  echo '{{"id": "1", "moves": ["c3", "b4"], "analyzeTurns": [0, 1, 2]}}' | alphagat analyze --board hex:5
  alphagat analyze runs/go --simulations 256 < queries.jsonl > answers.jsonl

The docstring of alphagat/serving/protocols/json_server.py describes the fields of queries and answers."""


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser("analyze", "The format follows KataGo's analysis engine.", EXAMPLES)
    engine_options.add_options(parser, simulations="simulations per move", most="largest maxVisits")
    sizes = Limits(at_least=1, at_most=65_536)
    commands.add_number(parser, "--batch", int, sizes, default=16, help="positions per batch")
    return parser


def analyze(argv: Sequence[str]) -> None:
    """Answers queries until the end of input."""
    options = make_parser().parse_args(list(argv))
    engine_options.check_options(options)
    with terminal.status(commands.LOADING):
        from alphagat.serving.protocols.json_server import (
            JsonServer,  # JAX is imported only after the flags are checked
        )
        from alphagat.serving.protocols.line_reader import standard_streams

        server = JsonServer(
            lambda board: engine_options.open_agent(options, board),
            simulations=options.simulations,
            max_simulations=options.max_simulations,
            batch_size=options.batch,
        )
    server.serve(*standard_streams())


def run(argv: Sequence[str]) -> int:
    """Analyzes with the arguments `argv` (without the program's name) and returns the exit status."""
    return commands.run(analyze, argv)
