"""Wrong command lines of every command give one line and status 2: those that are refused before JAX is imported."""

import importlib
import itertools
import runpy
from pathlib import Path

import pytest

from alphagat.cli import COMMANDS

BENCHMARK = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "bad_commands.py"))
# The other kinds need games, runs or networks, and take seconds.
FAST = (
    "unknown flag",
    "misspelled flag",
    "no value",
    "empty value",
    "number",
    "field",
    "choice",
    "unknown field",
    "config file",
)
LINES = list(itertools.islice((line for line in BENCHMARK["bad_lines"](seed=1) if line.kind in FAST), 150))


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.command} {line.kind}")
def test_a_wrong_line_gives_one_line_and_status_2(line, tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture):
    monkeypatch.chdir(Path(__file__).parents[1])
    words = [word.replace("FOLDER", str(tmp_path)) for word in line.words]
    assert importlib.import_module(f"alphagat.cli.{line.command}").run(words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert printed.err.startswith("error: ")


def test_the_lines_are_of_all_commands():
    assert {line.command for line in LINES} == set(COMMANDS) == set(BENCHMARK["BASES"])
