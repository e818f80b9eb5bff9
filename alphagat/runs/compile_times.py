"""Remembers how long the programs of a run took to compile, in the folder of the compilation cache."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from alphagat import bounded_json
from alphagat.runs.atomic_files import write_atomically
from alphagat.runtime.xla import CACHE_VARIABLE

FILE = "compile_seconds.json"
MAX_ENTRIES = 500  # the oldest are dropped


def expected_seconds(boards: Sequence[str]) -> float | None:
    """Returns how long the last compilation for these boards took on this machine; None if none is known."""
    return _read().get(_key(boards))


def remember(boards: Sequence[str], seconds: float) -> None:
    """Stores the duration of a compilation, if there is a cache folder that can be written."""
    file = _file()
    if file is None:
        return
    others = {key: value for key, value in _read().items() if key != _key(boards)}
    kept = dict([*others.items(), (_key(boards), round(seconds, 1))][-MAX_ENTRIES:])
    try:
        write_atomically(file, json.dumps(kept, indent=1) + "\n")
    except OSError:
        return  # without it, the next start gives no estimate


def _key(boards: Sequence[str]) -> str:
    return ",".join(boards)


def _file() -> Path | None:
    folder = os.environ.get(CACHE_VARIABLE)
    return Path(folder) / FILE if folder and Path(folder).is_dir() else None


def _read() -> dict[str, float]:
    """Returns the durations by boards; none if the file is missing or damaged."""
    file = _file()
    try:
        found = bounded_json.read(file) if file else {}
    except (OSError, ValueError):
        return {}
    entries = found.items() if isinstance(found, dict) else ()
    return {key: float(value) for key, value in entries if isinstance(value, int | float) and 0 < value < 1e5}
