"""Reads JSON of bounded size and depth. No text, however damaged or hostile, raises anything but `ValueError`."""

import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

MAX_BYTES = 64 * 2**20
MAX_DEPTH = 100  # levels of lists and objects


def parse(text: str | bytes, max_bytes: int = MAX_BYTES) -> Any:
    """Returns the value of a JSON text.

    Raises:
      ValueError: the text is not JSON, is longer than `max_bytes`, or is nested deeper than `MAX_DEPTH`. The message is
        one line.
    """
    if len(text) > max_bytes:
        raise ValueError(f"it is larger than {max_bytes / 2**20:g} MiB, the limit of JSON")
    try:
        value = json.loads(text)
    except RecursionError:
        raise _too_deep() from None
    if _is_too_deep(value):
        raise _too_deep()
    return value


def read(file: str | os.PathLike, max_bytes: int = MAX_BYTES) -> Any:
    """Returns the value of a JSON file. Raises OSError, or ValueError as `parse`."""
    with Path(file).open("rb") as stream:
        return parse(stream.read(max_bytes + 1), max_bytes)


def _is_too_deep(value: Any) -> bool:
    level, depth = _contents([value]), 0
    while level and depth <= MAX_DEPTH:
        level, depth = _contents(item for content in level for item in content), depth + 1
    return depth > MAX_DEPTH


def _contents(values: Iterable[Any]) -> list[Collection[Any]]:
    """Returns what the lists and objects among the values contain."""
    return [each.values() if isinstance(each, dict) else each for each in values if isinstance(each, dict | list)]


def _too_deep() -> ValueError:
    return ValueError(f"it is nested deeper than {MAX_DEPTH} levels, the limit of JSON")
