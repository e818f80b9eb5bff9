"""The bounds of numbers in configs, flags and names such as `mcts:100`.

Each number has a lower and a finite upper bound. The bounds are far beyond useful values, and refuse those at which
arithmetic overflows or a run cannot start.
"""

import dataclasses
import math
import operator
import os
import reprlib
from typing import Any

from alphagat.errors import UserError

MAX_SEED = 2**32 - 1
MAX_SIMULATIONS = 65_536  # per move
MAX_SYMMETRIES = 256  # of a board; a square has 8
MAX_GAMES = 1_000_000  # of a match
MAX_ITERATIONS = 1_000_000
MAX_PLIES = 1_000_000  # of a game
MAX_BATCH = 2**24  # positions, or games in flight
MAX_PROCESSES = 65_536
LONGEST_SHOWN = 200  # characters of a value in an error
_SHORT = reprlib.Repr()  # also ends on values of any depth
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = LONGEST_SHOWN
_SHORT.maxtuple = _SHORT.maxlist = _SHORT.maxdict = 20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The values that a field or flag accepts; None sets no limit. For a tuple, they apply to each item."""

    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[str, ...] | None = None

    def accept(self, value: Any) -> bool:
        """Returns whether a finite number or a choice is within the limits."""
        return (
            (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
            and (self.choices is None or value in self.choices)
        )

    def __str__(self) -> str:
        """Describes the limits, such as `at least 0 and below 1` or `one of gat, resnet`; empty without limits."""
        numbers = {"at least": self.at_least, "above": self.above, "at most": self.at_most, "below": self.below}
        parts = [f"{name} {limit}" for name, limit in numbers.items() if limit is not None]
        return " and ".join([*parts, *([f"one of {', '.join(self.choices)}"] if self.choices else [])])


def read_number(text: str, kind: type, limits: Limits) -> Any:
    """Reads an integer or a float.

    Raises:
      UserError: it is no number, or outside the limits; the message describes them, such as `at least 1`.
    """
    name = "an integer" if kind is int else "a finite number"
    try:
        value = kind(text)
    except ValueError:  # also of an integer with thousands of digits
        raise UserError(f"{name}, {limits}") from None
    if not is_finite(value):
        raise UserError(f"{name}, {limits}")
    if not limits.accept(value):
        raise UserError(str(limits))
    return value


def check_integer(name: str, value: Any, limits: Limits) -> int:
    """Returns an argument as an int, also if it is an integer of NumPy.

    Raises:
      UserError: it is no integer, or outside the limits.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not limits.accept(number):
        text = repr(shown(value)) if isinstance(value, str) else shown(value)
        raise UserError(f"{name}={text}: it must be an integer, {limits}")
    return number


def is_finite(value: float) -> bool:
    """Returns whether a number is finite; an integer may be too large for a float."""
    return isinstance(value, int) or math.isfinite(value)


def shown(value: Any) -> str:
    """Returns a value as text for an error, cut if it is long."""
    try:
        text = value if isinstance(value, str) else str(value) if isinstance(value, os.PathLike) else _SHORT.repr(value)
    except ValueError:  # Python refuses to convert integers of thousands of digits to text
        text = "a number of thousands of digits"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
