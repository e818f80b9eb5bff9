"""Files that are written in full or not at all, and files in the way, which are moved and never overwritten."""

import itertools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from alphagat.errors import UserError


def write_atomically(file: Path, contents: str | bytes) -> None:
    """Replaces `file`: writes a temporary file beside it, syncs it to disk and renames it. Text becomes UTF-8.

    Raises:
      UserError: `file` is a folder.
    """
    if file.is_dir():
        raise UserError(f"{file} is a folder, but a file of that name must be written; rename the folder")
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(contents.encode() if isinstance(contents, str) else contents)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def is_unfinished(found: Path, name: str) -> bool:
    """Returns whether `found` is what a killed process left of the file called `name` in `write_atomically`."""
    return found.match(f".{name}.*.tmp")


def check_new(file: Path, *endings: str) -> None:
    """Raises UserError if the file exists or cannot be made, its folder does not exist, or its suffix is not in
    `endings`.
    """
    if file.exists():
        raise UserError(f"{file} exists, and nothing is overwritten; name a new file")
    if file.suffix not in endings:
        raise UserError(f"{file}: end the name with {' or '.join(endings)}")
    if not file.parent.is_dir():
        raise UserError(f"{file}: there is no folder {file.parent}; make it first")
    check_writable(file)


def check_writable(file: Path) -> None:
    """Raises UserError if a file beside `file`, in the same folder, cannot be made."""
    try:
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".alphagat."):
            pass
    except OSError as error:
        raise UserError(f"{file}: files cannot be made in {file.parent} ({error.strerror}); use another") from error


def move_if_wrong_type(path: Path, has_right_type: Callable[[Path], bool]) -> list[str]:
    """Renames an existing path of the wrong type, and returns a note of that."""
    if has_right_type(path) or not os.path.lexists(path):
        return []
    to = path.rename(free_name(path))
    return [f"{path} was of the wrong type, and was moved to {to.name}"]


def free_name(path: Path) -> Path:
    """Returns a path beside `path` that does not exist: `NAME.damaged`, `NAME.damaged.1`, ..."""
    suffixes = itertools.chain(["damaged"], (f"damaged.{number}" for number in itertools.count(1)))
    return next(to for suffix in suffixes if not os.path.lexists(to := path.with_name(f"{path.name}.{suffix}")))
