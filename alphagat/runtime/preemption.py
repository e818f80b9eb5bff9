"""SIGTERM, by which a scheduler asks for the machine back: noticed at any time, acted on when the run can be saved."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from alphagat.runtime import distributed

T = TypeVar("T")

_requested = threading.Event()


class Preempted(Exception):
    """The run was asked to end by SIGTERM, and everything it has done is saved."""


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Notes a SIGTERM inside instead of dying of it.

    It does nothing outside the main thread, where Python allows no handler, and where there are several processes, for
    which JAX listens itself.
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
    """Returns whether a SIGTERM has come."""
    return _requested.is_set()


def run(work: Callable[[], T]) -> T:
    """Calls `work`, whose effects may be lost, and returns what it returns.

    It runs in a thread of its own, because a signal reaches Python only between two steps of the main thread, and a
    match or a compilation is one step.

    Raises:
      Preempted: SIGTERM has come; `work` is left to itself, until the process ends.
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
