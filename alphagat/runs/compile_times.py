"""Remembers which configs have their programs in the compilation cache, and how long the programs of each set of boards
took to compile, in a file beside the cache.
"""

import hashlib
import json
import os
from pathlib import Path

import jax

from alphagat import bounded_json, config_fields
from alphagat.config import Config
from alphagat.runs.atomic_files import write_atomically
from alphagat.runtime.xla import CACHE_VARIABLE
from alphagat.wording import counted

FILE = "compile_seconds.json"
MAX_ENTRIES = 500  # the oldest are dropped
# Fields that do not change the programs of an iteration. Of `evaluation.`, fast searches use `VALUE_SCALE`.
IRRELEVANT = ("seed", "trackers", "init_from", "evaluation.", "checkpoint.")
VALUE_SCALE = "evaluation.value_scale"


def describe_expected(config: Config) -> str:
    """Returns what to say of the compilation for this config: cached, the duration for these boards, or nothing."""
    known = _read()
    if _signature(config) in known:
        return ", cached"
    seconds = known.get(_boards(config))
    return "" if seconds is None else f", about {seconds:.0f} s"


def remember(config: Config, seconds: float, num_cached: int) -> None:
    """Stores that the programs of this config are cached, if there is a cache folder that can be written.

    Args:
      seconds: how long they took to compile; stored for the boards if `num_cached` is 0.
      num_cached: the number of programs that came from the cache.
    """
    file = _file()
    if file is None:
        return
    new = {_signature(config): seconds} | ({} if num_cached else {_boards(config): seconds})
    others = {key: value for key, value in _read().items() if key not in new}
    kept = [*others.items(), *((key, round(value, 1)) for key, value in new.items())][-MAX_ENTRIES:]
    try:
        write_atomically(file, json.dumps(dict(kept), indent=1) + "\n")
    except OSError:
        return  # without it, the next start says less


def _boards(config: Config) -> str:
    return f"{','.join(config.boards)} on {counted(jax.device_count(), 'device')}"


def _signature(config: Config) -> str:
    """Identifies the programs of a run."""
    fields = config_fields.fields(config)
    values = {
        each.path: each.value for each in fields if each.path == VALUE_SCALE or not each.path.startswith(IRRELEVANT)
    }
    machine = jax.device_count(), jax.__version__, os.environ.get("XLA_FLAGS", "").split()
    return hashlib.sha256(json.dumps([values, *machine]).encode()).hexdigest()[:16]


def _file() -> Path | None:
    folder = os.environ.get(CACHE_VARIABLE)
    return Path(folder) / FILE if folder and Path(folder).is_dir() else None


def _read() -> dict[str, float]:
    """Returns the durations in seconds; none if the file is missing or damaged."""
    file = _file()
    try:
        found = bounded_json.read(file) if file else {}
    except (OSError, ValueError):
        return {}
    entries = found.items() if isinstance(found, dict) else ()
    return {key: float(value) for key, value in entries if isinstance(value, int | float) and 0 <= value < 1e5}
