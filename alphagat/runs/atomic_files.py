"""Atomic file writes: a reader, or a crash, sees either the old or the new contents in full."""

import os
from pathlib import Path

from alphagat.errors import UserError


def write_atomically(file: Path, text: str) -> None:
    """Replaces `file`: writes a temporary file beside it, syncs it to disk and renames it.

    Raises:
      UserError: `file` is a folder.
    """
    if file.is_dir():
        raise UserError(f"{file} is a folder, and a file of that name has to be written; rename it")
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def check_new(file: Path, *endings: str) -> None:
    """Raises UserError if the file exists, its folder does not, or its suffix is not in `endings`."""
    if file.exists():
        raise UserError(f"{file} exists, and nothing is overwritten; name a new file")
    if file.suffix not in endings:
        raise UserError(f"{file}: end the name with {' or '.join(endings)}")
    if not file.parent.is_dir():
        raise UserError(f"{file}: there is no folder {file.parent}; make it first")
