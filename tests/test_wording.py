"""Tests the wording of counts, and that no message avoids it by `device(s)`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from alphagat.wording import counted, sized

ROOT = Path(__file__).parent.parent
FILES = sorted(file for folder in ("alphagat", "benchmarks") for file in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "device", "0 devices"),
        (1, "device", "1 device"),
        (2, "device", "2 devices"),
        (1, "other process", "1 other process"),
        (1200, "other process", "1,200 other processes"),
        (3, "match", "3 matches"),
        (1, "ply", "1 ply"),
        (2, "ply", "2 plies"),
    ],
)
def test_a_noun_agrees_with_its_number(number, noun, text):
    assert counted(number, noun) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (30_200, "30.2 kB"), (1.26e6, "1.3 MB"), (1.7e10, "17.0 GB")],
)
def test_a_size_has_a_fitting_unit(size, text):
    assert sized(size) == text


def texts(file: Path) -> Iterator[str]:
    """Yields the constant parts of the texts of a file, docstrings included."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_text_writes_a_plural_in_parentheses():
    found = [(str(file), text) for file in FILES for text in texts(file) if re.search(r"\w\w\((s|es)\)", text)]
    assert found == []
