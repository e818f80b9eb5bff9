"""Runs wrong command lines of every command, and counts those that do not end as they should.

    python benchmarks/bad_commands.py                       # 500 lines
    python benchmarks/bad_commands.py --lines 50 --seed 1

Each line must end within ten seconds with status 2, one line of error and no other output.
"""

import argparse
import collections
import importlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from alphagat import config_fields
from alphagat.cli import COMMANDS
from alphagat.cli.number_actions import Number
from alphagat.config import Config

ROOT = Path(__file__).parents[1]
SECONDS = 10.0
TRAINING = ["--config", "configs/smoke", "--workdir", "FOLDER/run"]
# A line of each command without the mistakes below. FOLDER is an empty folder, so some of them lack a run.
BASES: dict[str, list[str]] = {
    "analyze": ["--board", "hex:5"],
    "completion": ["bash"],
    "check": ["hex:3"],
    "configs": ["smoke"],
    "doctor": ["--config", "configs/smoke"],
    "evaluate": ["--workdir", "hex"],
    "export": ["--workdir", "FOLDER/none", "--out", "FOLDER/x.safetensors"],
    "gtp": ["--board", "hex:5"],
    "launch": ["--processes", "2", *TRAINING],
    "train": TRAINING,
    "match": ["random", "random", "--board", "hex:3", "--games", "2"],
    "pretrain": [*TRAINING, "--games", "FOLDER"],
    "rate": ["--workdir", "FOLDER/none"],
    "report": ["--workdir", "FOLDER/none"],
    "play": ["--board", "hex:5", "--port", "0"],
    "uci": ["FOLDER/none"],
    "watch": ["FOLDER/none", "--port", "0"],
}
# Commands that run without all of their arguments.
MAY_BE_SHORT = ("configs", "doctor", "play", "launch", "match", "pretrain", "train", "uci")
WITH_CONFIG = ("train", "pretrain", "launch", "doctor")
CONTRADICTIONS: dict[str, list[list[str]]] = {
    "analyze": [["FOLDER/a", "--workdir", "FOLDER/b"]],
    "doctor": [["--config.mesh.model=3"], ["--config.network.width=10", "--config.network.num_heads=3"]],
    "evaluate": [["--games", "7"], ["--opponent", "nobody"]],
    "export": [["--board", "hex:5"], ["--batch", "4"], ["--out", "FOLDER/x.txt"], ["--card", "FOLDER/none/x.md"]],
    "gtp": [["FOLDER/a", "--workdir", "FOLDER/b"]],
    "launch": [["--nodes", "2"], ["--node_rank", "0"], ["--config.search.num_simulations=0"]],
    "train": [
        ["--nodes", "2"],
        ["--nodes", "2", "--node_rank", "2", "--coordinator", "localhost:1234"],
        ["--nodes", "2", "--node_rank", "0", "--coordinator", "localhost"],
        ["--profile", "5:2"],
        ["--profile", "1:99999999999999999999"],
        ["--config.selfplay.opening_plies=1000"],
        ["--config.replay.capacity=10", "--config.replay.min_size=20"],
        ["--config.learner.batch_size=100"],
        ["--config.boards=hex:5,go:5"],
        ["--config.network.width=65536", "--config.network.num_blocks=512"],
        ["--config.replay.capacity=1000000000"],
        ["--config.mesh.actors=4", "--config.mesh.fsdp=true"],
    ],
    "match": [
        ["--sprt", "30,0"],
        ["--games", "7"],
        ["--games_at_once", "3"],
        ["--opening_plies", "9"],
        ["--out", "FOLDER/x.txt"],
        ["--engine_option", "Hash"],
    ],
    "pretrain": [["--holdout", "1"], ["--config.mesh.actors=2"], ["--games", "FOLDER/nothing.sgf"]],
    "rate": [["--games", "7"], ["--iterations", "1,"], ["--iterations", "a"]],
    "report": [["--out", "x.txt"], ["--out", "FOLDER/none/x.html"]],
    "play": [["--host", "nowhere.invalid"], ["--workdir", "FOLDER/none"]],
    "uci": [["--workdir", "FOLDER/b"]],
    "watch": [["--host", ""], ["--workdir", "FOLDER/b"]],
}
BOARDS = ["", "x", "hex", "hex:0", "hex:1000000", "hex:99999999999999999999", "hex:-5", "hex:5:5", "go:20", "chess:8"]
BOARDS += ["mnk:1x1x1", "mnk:99999999999999999999x3x3", "connect_four:9", "2048:99", "gomoku:4", "pgx:nothing", "ä:1"]
OPPONENTS = [
    "",
    "x",
    "mcts",
    "mcts:0",
    "mcts:-1",
    "mcts:1e9",
    "mcts:65537",
    "mcts:99999999999999999999",
    "gtp:",
    "uci:",
]


class Line(NamedTuple):
    """A wrong command line: the kind of its mistake, the command, and its arguments."""

    kind: str
    command: str
    words: list[str]


def actions_of(command: str) -> list[argparse.Action]:
    """Returns the flags of a command that take a value."""
    parser = importlib.import_module(f"alphagat.cli.{command}").make_parser()
    return [each for each in parser._actions if each.nargs != 0 and each.option_strings]


def bad_number(random: random.Random, most: float) -> str:
    """Returns a text that no numeric flag or field accepts."""
    nines = random.choice((20, 100, 5000))
    return random.choice(("words", "nan", "inf", "-inf", "1e39", "", str(most + 1), "9" * nines, "-" + "9" * 20))


def most_of(limits) -> float:
    return limits.below if limits.at_most is None else limits.at_most


def bad_lines(seed: int) -> Iterator[Line]:
    """Yields wrong lines without end; equal seeds give equal lines."""
    chance, names = random.Random(seed), list(COMMANDS)
    actions = {name: actions_of(name) for name in names}
    fields = list(config_fields.fields(Config()))
    for command in names:
        for words in CONTRADICTIONS.get(command, ()):
            yield Line("contradiction", command, [*BASES[command], *words])
    while True:
        for command in names:
            base, flags = BASES[command], actions[command]
            yield Line("unknown flag", command, [*base, chance.choice(("--bogus", "-z", "--bogus=3", "--5"))])
            if flags:
                flag = chance.choice(flags).option_strings[0]
                yield Line("misspelled flag", command, [*base, f"{flag[:-1]}=3"])
                yield Line("no value", command, [*base, flag])
            texts = [each for each in flags if each.type is None]  # other types accept an empty text
            if texts:
                yield Line("empty value", command, [*base, f"{chance.choice(texts).option_strings[0]}="])
            numbers = [each for each in flags if isinstance(each, Number)]
            if numbers:
                number = chance.choice(numbers)
                words = [f"{number.option_strings[0]}={bad_number(chance, most_of(number.limits))}"]
                yield Line("number", command, [*base, *words])
            if any(each.dest == "board" for each in flags):
                yield Line("board", command, [*base, f"--board={chance.choice(BOARDS)}"])
            if command in ("match", "evaluate"):
                opponent = chance.choice(OPPONENTS)
                words = [opponent, *base[1:]] if command == "match" else [*base, f"--opponent={opponent}"]
                yield Line("opponent", command, words)
            if any(each.dest == "workdir" for each in flags):
                folder = chance.choice(("FOLDER/" + "x" * 300, "README.md", "README.md/x", "benchmarks", "/proc/none"))
                if command != "launch":  # which leaves the folder to its processes
                    yield Line("workdir", command, [*base, f"--workdir={folder}"])
            if command in WITH_CONFIG:
                yield from _bad_config(chance, command, fields)
            if command not in MAY_BE_SHORT:
                first = 2 * chance.randrange(max(len(base) // 2, 1))
                yield Line("missing flag", command, base[:first] + base[first + 2 :])


def _bad_config(chance: random.Random, command: str, fields: list[config_fields.Field]) -> Iterator[Line]:
    base = BASES[command]
    field = chance.choice([each for each in fields if each.limits.choices is None and type(each.value) in (int, float)])
    value = bad_number(chance, most_of(field.limits))
    yield Line("field", command, [*base, f"--config.{field.path}={value}"])
    texts = [each for each in fields if each.limits.choices or isinstance(each.value, bool)]
    text = chance.choice(texts)
    wrong = ("x", "7") if isinstance(text.value, tuple) else ("x", "", "7")  # no text empties a tuple
    yield Line("choice", command, [*base, f"--config.{text.path}={chance.choice(wrong)}"])
    yield Line("unknown field", command, [*base, f"--config.{field.path}s=3"])
    path = chance.choice(("nowhere", "configs", "configs/none.py", "FOLDER", "README.md", "x" * 300))
    yield Line("config file", command, [*base, f"--config={path}"])
    if command == "train":
        yield Line("board", command, [*base, f"--config.boards={chance.choice(BOARDS)}"])


class Ending(NamedTuple):
    """The end of a command; the status is None if it had to be killed."""

    line: Line
    status: int | None
    said: str
    seconds: float

    @property
    def violation(self) -> str:
        """Says what is wrong with the end; empty if nothing is."""
        lines = self.said.splitlines()
        if self.status is None:
            return "no end"
        if self.status != 2:
            return f"status {self.status}"
        if len(lines) != 1 or not lines[0].startswith("error: "):
            return f"{len(lines)} lines"
        return "slow" if self.seconds > SECONDS else ""


def run(line: Line, folder: Path) -> Ending:
    """Runs a line in a process of its own."""
    words = [word.replace("FOLDER", str(folder)) for word in line.words]
    start = time.perf_counter()
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "alphagat", line.command, *words],
            cwd=ROOT,
            env=os.environ | {"JAX_PLATFORMS": "cpu"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=6 * SECONDS,
        )
    except subprocess.TimeoutExpired as end:
        return Ending(line, None, (end.stdout or b"").decode(errors="replace"), time.perf_counter() - start)
    return Ending(line, ended.returncode, ended.stdout.decode(errors="replace"), time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=500, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    parser.add_argument("--at_once", type=int, default=2, help="processes (default: %(default)s)")
    options = parser.parse_args()
    generator = bad_lines(options.seed)
    lines = [next(generator) for _ in range(options.lines)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.at_once) as pool:
        endings = list(pool.map(lambda line: run(line, Path(folder)), lines))
    table = Table("mistake", "lines", "violations", "slowest, s")
    kinds = collections.defaultdict(list)
    for ending in endings:
        kinds[ending.line.kind].append(ending)
    for kind, group in [*sorted(kinds.items()), ("all", endings)]:
        wrong, slowest = sum(bool(each.violation) for each in group), max(each.seconds for each in group)
        table.add_row(kind, str(len(group)), str(wrong), f"{slowest:.1f}")
    console = Console()
    console.print(table)
    violations = [each for each in endings if each.violation]
    for each in violations:
        words = " ".join(word[:60] for word in each.line.words)
        console.print(f"{each.violation}: {each.line.command} {words}\n  {each.said[-300:]}", markup=False)
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
