"""Sends random lines to the GTP, UCI and JSON engines, and checks that they stay in step with their protocols.

    python benchmarks/fuzz_engines.py                  # 10,000 lines to each engine, in each locale
    python benchmarks/fuzz_engines.py --lines 1000

In step means: GTP answers every command once, with its number and in order; UCI answers every `isready` and every `go`;
JSON answers every query once; and the last command, a known one, gets its known answer. A third of the lines are valid,
a third are valid with random bytes appended, and a third are random bytes.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
from rich.console import Console
from rich.table import Table

from alphagat.agents import weight_files
from alphagat.agents.build import make_configured_network, make_params
from alphagat.config import Config
from alphagat.games import make_game

ROOT = Path(__file__).parents[1]
SECONDS = 600  # limit per engine
LOCALES = {
    "strict UTF-8": {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8:strict"},
    "C, no UTF-8 mode": {"LC_ALL": "C", "PYTHONUTF8": "0"},
}
BYTES = [byte for byte in range(256) if byte not in b"\r\n"]
GTP = ("play b a1", "play w b2", "genmove b", "undo", "showboard", "boardsize 5", "clear_board", "final_score", "name")
UCI = (
    "position startpos moves e2e4",
    "position startpos",
    "go nodes 1",
    "ucinewgame",
    "setoption name Simulations value",
)
JSON = ('"moves": ["a1", "b2"], "maxVisits": 0', '"maxVisits": 0', '"moves": ["z9"]', '"board": "nowhere"')


class Fuzz(NamedTuple):
    """The words after `python -m`, the lines to send, and a function that finds what is wrong with the answers."""

    words: list[str]
    lines: list[bytes]
    mistake_in: Callable[[bytes], str]


def damaged(random_: random.Random, valid: str) -> bytes:
    """Returns the line, the line and random bytes, or random bytes after a `z`, which begins no command."""
    kind, junk = random_.randrange(3), bytes(random_.choices(BYTES, k=random_.choice((1, 10, 100))))
    if random_.random() < 0.001:
        junk = b"[" * 100_000
    return (valid.encode(), valid.encode() + b" " + junk, b"z" + junk)[kind]


def gtp(random_: random.Random, number: int) -> Fuzz:
    lines = [b"%d " % row + damaged(random_, random_.choice(GTP)) for row in range(number)]
    expected = [b"%d" % row for row in range(number + 1)]

    def mistake_in(said: bytes) -> str:
        answered = re.findall(rb"(?m)^[=?]([0-9]+)", said)
        if answered != expected or b"internal error" in said:
            return f"{len(answered)} answers to {len(expected)} commands"
        return "" if said.endswith(b"=%d AlphaGAT\n\n" % number) else "the last answer is wrong"

    words = ["alphagat", "gtp", "--board", "hex:5", "--simulations", "1", "--max_simulations", "4"]
    return Fuzz(words, [*lines, b"%d name" % number], mistake_in)


def uci(random_: random.Random, number: int, network: Path) -> Fuzz:
    lines = [each for _ in range(number) for each in (damaged(random_, random_.choice(UCI)), b"isready")]
    commands = [line.split(b" ")[0] for line in lines]

    def mistake_in(said: bytes) -> str:
        for command, answer in ((b"isready", b"readyok"), (b"go", b"bestmove")):
            asked, answered = commands.count(command), len(re.findall(rb"(?m)^%s\b" % answer, said))
            if asked != answered:
                return f"{answered} times {answer.decode()} to {asked} times {command.decode()}"
        return "" if said.endswith(b"uciok\n") else "the last answer is wrong"

    return Fuzz(["alphagat", "uci", str(network), "--max_simulations", "4"], [*lines, b"uci"], mistake_in)


def analyze(random_: random.Random, number: int) -> Fuzz:
    lines = [damaged(random_, f'{{"id": "{row}", {random_.choice(JSON)}}}') for row in range(number)]

    def mistake_in(said: bytes) -> str:
        answers = [json.loads(line) for line in said.splitlines()]
        if len(answers) != number + 1 or not all(("error" in each) != ("rootInfo" in each) for each in answers):
            return f"{len(answers)} answers to {number + 1} queries"
        answered = [each["id"] for each in answers if "rootInfo" in each]
        if len(set(answered)) < len(answered):
            return "two answers to one query"
        return "" if "rootInfo" in next(each for each in answers if each.get("id") == "end") else "the last is wrong"

    words = ["alphagat", "analyze", "--board", "hex:5", "--max_simulations", "4"]
    return Fuzz(words, [*lines, b'{"id": "end", "maxVisits": 0}'], mistake_in)


def attack(fuzz: Fuzz, variables: dict[str, str]) -> tuple[str, float]:
    """Returns a mistake, empty if there is none, and the seconds that the engine ran."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
    env |= {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)} | variables
    begin, command = time.monotonic(), [sys.executable, "-m", *fuzz.words]
    try:
        run = subprocess.run(
            command, cwd=ROOT, env=env, input=b"\n".join(fuzz.lines) + b"\n", capture_output=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"no end after {SECONDS} s", SECONDS
    seconds = time.monotonic() - begin
    if run.returncode or run.stderr:
        return f"status {run.returncode}: {run.stderr.decode(errors='replace')[-300:]}", seconds
    return fuzz.mistake_in(run.stdout), seconds


def write_chess_network(file: Path) -> None:
    """Writes a small untrained network."""
    config, game = Config(boards=("chess",)), make_game("chess")
    config.network.width, config.network.num_blocks, config.network.num_heads = 16, 1, 2
    weight_files.write(file, make_params(game, make_configured_network(config, game), jax.random.key(0)), config, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=10_000, help="random lines to each engine (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    table, failures = Table("engine", "locale", "lines", "seconds", "answer"), 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(Path(folder) / "compiled")
        network = Path(folder) / "chess.safetensors"
        write_chess_network(network)
        fuzzes = {
            "GTP": gtp(random.Random(options.seed), options.lines),
            "UCI": uci(random.Random(options.seed), options.lines, network),
            "JSON": analyze(random.Random(options.seed), options.lines),
        }
        for engine, fuzz in fuzzes.items():
            for name, variables in LOCALES.items():
                mistake, seconds = attack(fuzz, variables)
                failures += bool(mistake)
                table.add_row(engine, name, f"{len(fuzz.lines):,}", f"{seconds:.0f}", mistake or "alive and in step")
    Console().print(table)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
