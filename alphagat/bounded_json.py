"""Reads JSON of bounded size and depth. No text, however damaged or hostile, raises anything but `ValueError`."""

import json
import os
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
    opening = ("[", "{") if isinstance(text, str) else (b"[", b"{")
    if sum(text.count(bracket) for bracket in opening) > MAX_DEPTH and _is_too_deep(value):
        raise _too_deep()
    return value


def read(file: str | os.PathLike) -> Any:
    """Returns the value of a JSON file. Raises OSError, or ValueError as `parse`."""
    with Path(file).open("rb") as stream:
        return parse(stream.read(MAX_BYTES + 1))


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        lists = [list(each.values()) if isinstance(each, dict) else each for each in level]
        level = [item for each in lists if isinstance(each, list) for item in each]
    return bool(level)


def _too_deep() -> ValueError:
    return ValueError(f"it is nested deeper than {MAX_DEPTH} levels, the limit of JSON")
