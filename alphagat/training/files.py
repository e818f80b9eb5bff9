"""Writing a file so that a reader, or a crash, sees the old one or the new one whole."""

import os
from pathlib import Path


def write_atomically(file: Path, text: str) -> None:
    """Replaces `file`: a neighbouring temporary file is written, forced to the disk and renamed over it."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
