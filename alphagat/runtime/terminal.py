"""What a command shows while it prepares."""

import contextlib
import sys

from rich.console import Console


def status(text: str) -> contextlib.AbstractContextManager[object]:
    """Shows `text` on standard error until the end of the block; nothing if that is not a terminal."""
    return Console(stderr=True).status(text) if sys.stderr.isatty() else contextlib.nullcontext()
