"""Reads lines in the background."""

import contextlib
import functools
import io
import queue
import sys
import threading
from collections.abc import Iterator
from typing import TextIO

MAX_LINE = 2**20  # characters
TOO_LONG = f"the line has more than {MAX_LINE:,} characters; send a shorter one"
MAX_WAITING = 256  # lines that wait before no more are read: more than batches of the default size need
_NOTHING = object()


class Lines:
    """Reads the lines of a stream on a separate thread.

    A line of more than `MAX_LINE` characters arrives without its end, but with more than `MAX_LINE` characters, so that
    it can be refused.
    """

    def __init__(self, stream: TextIO):
        """Starts the thread, which ends with the stream or the process."""
        self._queue: queue.Queue[str | None] = queue.Queue(MAX_WAITING)
        self._next: str | object | None = _NOTHING
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def __iter__(self) -> Iterator[str]:
        """Yields the lines, without line ends, as they arrive."""
        while (line := self.peek()) is not None:
            self.skip()
            yield line

    def has_more(self) -> bool:
        """Returns whether `peek` would return without waiting."""
        return self._next is not _NOTHING or not self._queue.empty()

    def peek(self) -> str | None:
        """Waits for the next line and returns it without consuming it; None at the end of the stream."""
        if self._next is _NOTHING:
            self._next = self._queue.get()
        assert self._next is None or isinstance(self._next, str)
        return self._next

    def skip(self) -> None:
        """Consumes the line that `peek` returned."""
        self._next = _NOTHING

    def _read(self, stream: TextIO) -> None:
        with contextlib.suppress(OSError, ValueError):  # a stream that breaks, or holds invalid bytes, ends
            read = functools.partial(stream.readline, MAX_LINE + len("\r\n"))
            while part := read():
                self._queue.put(part.removesuffix("\n").removesuffix("\r"))
                while len(part) > MAX_LINE and not part.endswith("\n"):
                    part = read()
        self._queue.put(None)


def standard_streams() -> tuple[TextIO, TextIO]:
    """Returns standard input and output, in UTF-8 in every locale. Input bytes that are not UTF-8 become U+FFFD."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")
    return sys.stdin, sys.stdout
