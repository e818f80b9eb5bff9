"""Lines of text that arrive while something else is done."""

import queue
import threading
from collections.abc import Iterator
from typing import TextIO

_NOTHING = object()


class Lines:
    """Reads a stream on a thread of its own."""

    def __init__(self, stream: TextIO):
        """Starts to read; the thread ends with the stream, or with the process."""
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._next: str | object | None = _NOTHING
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def __iter__(self) -> Iterator[str]:
        """Yields the lines, without their ends, as they arrive."""
        while (line := self.peek()) is not None:
            self.skip()
            yield line

    def has_more(self) -> bool:
        """Whether a line, or the end of the stream, waits to be read."""
        return self._next is not _NOTHING or not self._queue.empty()

    def peek(self) -> str | None:
        """Returns the next line, which stays the next; None at the end. Waits for it."""
        if self._next is _NOTHING:
            self._next = self._queue.get()
        assert self._next is None or isinstance(self._next, str)
        return self._next

    def skip(self) -> None:
        """Drops the line that `peek` returned."""
        self._next = _NOTHING

    def _read(self, stream: TextIO) -> None:
        for line in stream:
            self._queue.put(line.rstrip("\r\n"))
        self._queue.put(None)
