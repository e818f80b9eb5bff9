"""Status lines on standard error, and output streams whose reader is gone."""

import contextlib
import os
import sys
from typing import IO

from rich.console import Console


def status(text: str) -> contextlib.AbstractContextManager[object]:
    """Shows `text` on standard error until the end of the block; nothing if that is not a terminal."""
    return Console(stderr=True).status(text) if sys.stderr.isatty() else contextlib.nullcontext()


def say(line: str) -> None:
    """Writes a line to standard error. If that cannot be written, as in `2>&1 | head`, the line is lost."""
    try:
        sys.stderr.write(line + "\n")
    except OSError:
        silence(sys.stderr)


def silence(stream: IO[str]) -> None:
    """Redirects a broken stream to the null device, so that buffered and later output raises no error."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
