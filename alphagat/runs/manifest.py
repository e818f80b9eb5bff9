"""The manifest of a checkpoint: the hash of every file in it. Orbax itself silently loads modified files."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

MANIFEST_FILE = "manifest.json"


def write_manifest(folder: Path, items: Sequence[str]) -> None:
    """Writes the hashes of all files in the subfolders `items`. Call it last, before the folder is renamed."""
    hashes = {name: _hash(folder / name) for name in _files(folder, items)}
    (folder / MANIFEST_FILE).write_text(json.dumps(hashes, indent=1) + "\n")


def find_damage(folder: Path, items: Sequence[str]) -> str | None:
    """Describes how the subfolders `items` differ from the manifest; None if they do not.

    A file missing from the manifest counts as damage, because Orbax reads every file in the folder.
    """
    try:
        hashes = json.loads((folder / MANIFEST_FILE).read_bytes())
    except FileNotFoundError:
        return f"{MANIFEST_FILE} is missing"
    except (OSError, ValueError) as error:
        return f"{MANIFEST_FILE} cannot be read ({error})"
    if not isinstance(hashes, dict):
        return f"{MANIFEST_FILE} is not a table of hashes"
    written = {name for name in hashes if name.split("/")[0] in items}
    found = set(_files(folder, items))
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


def _files(folder: Path, items: Sequence[str]) -> list[str]:
    files = [path for item in items for path in (folder / item).rglob("*") if not path.is_dir()]
    return sorted(path.relative_to(folder).as_posix() for path in files)


def _hash(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
