"""The manifest of a checkpoint: its step, the run it belongs to, and the hash of every file in it.

Orbax itself silently loads modified, renamed and foreign checkpoints.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from alphagat import bounded_json
from alphagat.runs.atomic_files import write_atomically

MANIFEST_FILE = "manifest.json"
METADATA_FILE = "_CHECKPOINT_METADATA"  # of Orbax, which changes it after the manifest is written


def write_manifest(folder: Path, items: Sequence[str], step: int, run: Mapping[str, Any]) -> None:
    """Writes the hashes of all files in the subfolders `items`. Call it last, before the folder is renamed.

    All files are then on disk: an older checkpoint may be deleted next, and the machine may lose power.

    Args:
      step: the number of iterations done.
      run: the config fields that identify the run, as JSON values by path.
    """
    hashes = {name: _hash(folder / name) for name in _files(folder, items)}
    for name in hashes:
        with (folder / name).open("rb") as stream:
            os.fsync(stream.fileno())
    text = json.dumps({"step": step, "run": run, "files": hashes}, indent=1) + "\n"
    write_atomically(folder / MANIFEST_FILE, text)


def find_damage(folder: Path, items: Sequence[str], step: int, run: Mapping[str, Any]) -> str | None:
    """Describes how the checkpoint differs from its manifest, its step or its run; None if it does not.

    A file missing from the manifest counts as damage, because Orbax reads every file in the folder. A field that only
    one of the two configs has is not compared, so that a run continues after new fields were added.
    """
    try:
        manifest = bounded_json.read(folder / MANIFEST_FILE)
        hashes, written_run, written_step = dict(manifest["files"]), dict(manifest["run"]), manifest["step"]
    except FileNotFoundError:
        return f"{MANIFEST_FILE} is missing"
    except OSError as error:
        return f"{MANIFEST_FILE} cannot be read ({error.strerror})"
    except (ValueError, TypeError, KeyError):
        return f"{MANIFEST_FILE} is not a manifest"
    if written_step != step:
        return f"it is the checkpoint of step {written_step}"
    for path in written_run.keys() & run.keys():
        if written_run[path] != run[path]:
            return f"it belongs to a run with config.{path}={written_run[path]!r}"
    if damage := find_metadata_damage(folder):
        return damage
    written = {name for name in hashes if name.split("/")[0] in items}
    try:
        found = set(_files(folder, items))
    except OSError as error:  # the run deletes its older checkpoints
        return f"its files cannot be listed ({error.strerror})"
    if written - found:
        return f"{min(written - found)} is missing"
    if found - written:
        return f"{min(found - written)} is not in {MANIFEST_FILE}"
    for name in sorted(written):
        try:
            if _hash(folder / name) != hashes[name]:
                return f"{name} has changed since it was written"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
    return None if written else f"{MANIFEST_FILE} names no file"


def find_metadata_damage(folder: Path) -> str | None:
    """Describes why Orbax's own file in a checkpoint is unreadable; None if it is readable or missing."""
    try:
        bounded_json.read(folder / METADATA_FILE)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        return f"{METADATA_FILE} cannot be read ({getattr(error, 'strerror', None) or error})"
    return None


def _files(folder: Path, items: Sequence[str]) -> list[str]:
    files = [path for item in items for path in (folder / item).rglob("*") if not path.is_dir()]
    return sorted(path.relative_to(folder).as_posix() for path in files)


def _hash(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
