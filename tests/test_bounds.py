"""Every number on a command line has bounds, and a number beyond them gives one line and status 2."""

import argparse
import importlib
import math

import pytest

from alphagat.bounds import Limits, read_number
from alphagat.cli import COMMANDS
from alphagat.cli.number_actions import Number, Numbers
from alphagat.errors import UserError

# Flags that hold no number, or one that another test checks: --profile (tests/training/test_profiling.py), --holdout
# (a field of the config) and --coordinator (tests/runtime/test_distributed.py).
TEXTS = {
    *(
        "a",
        "allowed_hosts",
        "anchors",
        "average",
        "b",
        "board",
        "card",
        "config",
        "engine_option",
        "host",
        "init_from",
        "opponent",
        "out",
    ),
    *("name", "named_config", "precision", "shell", "source", "sources", "workdir", "xla"),
    *("coordinator", "holdout", "profile", "pretrain games"),
}


def flags() -> list[tuple[str, argparse.Action]]:
    """Returns every flag that takes a value, with the name of its command."""
    parsers = {name: importlib.import_module(f"alphagat.cli.{name}").make_parser() for name in COMMANDS}
    return [(name, action) for name, parser in parsers.items() for action in parser._actions if action.nargs != 0]


FLAGS = flags()
NUMBERS = [(name, action) for name, action in FLAGS if isinstance(action, Number)]


@pytest.mark.parametrize(("name", "action"), FLAGS, ids=[f"{name} {action.dest}" for name, action in FLAGS])
def test_a_flag_is_a_number_within_bounds_or_a_text(name: str, action: argparse.Action):
    assert action.type in (None, str), "declare numbers by action=Number"
    if isinstance(action, Number):
        limits = action.limits
        assert (limits.at_least is None) != (limits.above is None)
        assert (limits.at_most is None) != (limits.below is None)
    else:
        assert {action.dest, f"{name} {action.dest}"} & TEXTS, "declare numbers by action=Number"


def beyond(action: Number) -> list[str]:
    """Returns values above the limits, in all notations."""
    most = action.limits.at_most if action.limits.below is None else action.limits.below
    assert most is not None
    values = [str(most + 1), "9" * 20, "9" * 5000, "inf", "nan", "1e39", "-1e39", "words", ""]
    return [",".join([value] * 2) if isinstance(action, Numbers) else value for value in values]


@pytest.mark.parametrize(("name", "action"), NUMBERS, ids=[f"{name} {action.dest}" for name, action in NUMBERS])
def test_a_number_beyond_its_bounds_gives_one_line(name: str, action: Number, capsys: pytest.CaptureFixture):
    run = importlib.import_module(f"alphagat.cli.{name}").run
    for value in beyond(action):
        assert run([f"{action.option_strings[0]}={value}"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"error: {action.option_strings[0]} {value[:200]}")
        assert str(action.limits) in line
        assert len(line) < 400


def test_numbers_at_their_bounds_are_read():
    assert read_number("3", int, Limits(at_least=3, at_most=3)) == 3
    assert read_number("2.5", float, Limits(above=2, below=3)) == 2.5
    for text, kind in (("2.5", int), ("4", int), ("nan", float), ("inf", float), ("2", float)):
        with pytest.raises(UserError):
            read_number(text, kind, Limits(above=2, below=4))
    assert math.isclose(read_number("1e-3", float, Limits(at_least=0, at_most=1)), 0.001)


@pytest.mark.parametrize(
    ("text", "kind", "limits", "message"),
    [
        ("x", int, Limits(at_least=1, at_most=9), "an integer, at least 1 and at most 9"),
        ("inf", float, Limits(above=0, at_most=4096), "a finite number, above 0 and at most 4096"),
    ],
)
def test_a_refusal_describes_the_numbers(text: str, kind: type, limits: Limits, message: str):
    with pytest.raises(UserError, match=f"^{message}$"):
        read_number(text, kind, limits)
