"""Handles SIGTERM, a scheduler's request to stop. The run saves its state at the next safe point and ends."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from alphagat.runtime import distributed

T = TypeVar("T")

_requested = threading.Event()


class Preempted(Exception):
    """Ends a run after SIGTERM.

    Attributes:
      is_saved: whether the run has a checkpoint; False before the end of its first iteration.
    """

    def __init__(self, is_saved: bool = True):
        super().__init__()
        self.is_saved = is_saved


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Records SIGTERM within the block instead of terminating.

    Does nothing outside the main thread, because Python allows no handler there, or with several processes, because JAX
    then handles the signal.
    """
    if threading.current_thread() is not threading.main_thread() or distributed.num_processes() > 1:
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: _requested.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        _requested.clear()


def is_requested() -> bool:
    """Returns whether SIGTERM has arrived."""
    return _requested.is_set()


def run(work: Callable[[], T]) -> T:
    """Returns the result of `work`, a function that may be abandoned at any time.

    `work` runs in a separate thread, because Python handles signals only between bytecode instructions of the main
    thread, and a match or a compilation may be one native call.

    Raises:
      Preempted: SIGTERM has arrived. `work` continues in the background until the process ends.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    while thread.is_alive():
        if is_requested():
            raise Preempted
        thread.join(0.05)
    if errors:
        raise errors[0]
    return results[0]
