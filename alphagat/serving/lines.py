"""Lines of text that arrive while something else is done."""

import queue
import threading
from collections.abc import Iterator
from typing import TextIO


class Lines:
    """Reads a stream on a thread of its own."""

    def __init__(self, stream: TextIO):
        """Starts to read; the thread ends with the stream, or with the process."""
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._is_over = False
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def __iter__(self) -> Iterator[str]:
        """Yields the lines, without their ends, as they arrive."""
        while not self._is_over:
            line = self._queue.get()
            if line is None:
                self._is_over = True
                return
            yield line

    def has_more(self) -> bool:
        """Whether a line, or the end of the stream, waits to be read."""
        return not self._queue.empty()

    def _read(self, stream: TextIO) -> None:
        for line in stream:
            self._queue.put(line.rstrip("\r\n"))
        self._queue.put(None)
