"""Analyzes positions read as JSON lines from standard input: `python -m alphagat.analyze --board hex:7`."""

import sys
from collections.abc import Sequence

from alphagat import commands
from alphagat.bounds import Limits, Number
from alphagat.serving import options as engine_options

EXAMPLES = f"""\
{engine_options.SOURCES}

examples:
  echo '{{"id": "1", "moves": ["c3", "b4"], "analyzeTurns": [0, 1, 2]}}' | python -m alphagat.analyze --board hex:5
  python -m alphagat.analyze runs/go --simulations 256 < queries.jsonl > answers.jsonl

The docstring of alphagat/serving/json_server.py describes the fields of queries and answers."""


def analyze(argv: Sequence[str]) -> None:
    """Answers queries until the end of input."""
    parser = commands.ArgumentParser(
        prog="python -m alphagat.analyze",
        description="Analyzes positions in batches. The format follows KataGo's analysis engine.",
        epilog=EXAMPLES,
    )
    engine_options.add_options(parser)
    parser.add_argument(
        "--batch",
        action=Number,
        kind=int,
        limits=Limits(at_least=1, at_most=65_536),
        default=16,
        help="positions per batch (default: %(default)s)",
    )
    options = parser.parse_args(list(argv))
    engine_options.check_options(options)
    from alphagat.serving.json_server import JsonServer  # JAX is imported only after the flags are checked
    from alphagat.serving.line_reader import standard_streams

    server = JsonServer(
        lambda board: engine_options.open_agent(options, board),
        simulations=options.simulations,
        max_simulations=options.max_simulations,
        batch_size=options.batch,
    )
    server.serve(*standard_streams())


def run(argv: Sequence[str]) -> int:
    """Analyzes with the arguments `argv` (without the program's name) and returns the exit status."""
    return commands.run(analyze, argv, interrupted="interrupted")


if __name__ == "__main__":
    commands.end(run(sys.argv[1:]))
