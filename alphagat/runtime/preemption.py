"""Handles requests to stop: SIGTERM by a scheduler, SIGHUP by a closed terminal, and the first Ctrl-C.

The run saves its state at the next safe point and ends; the second Ctrl-C ends it at once.
"""

import contextlib
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TypeVar

from alphagat.runtime import distributed

T = TypeVar("T")

STDERR = 2
SAYS = b"\ninterrupted: saving after this iteration; Ctrl-C again ends at once\n"

_requested = threading.Event()
_by_keyboard = threading.Event()
_abandoned = weakref.WeakSet[threading.Thread]()


class Preempted(Exception):
    """Ends a run after a request to stop.

    Attributes:
      is_saved: whether the run has a checkpoint; False before the end of its first iteration.
      by_keyboard: whether the request was Ctrl-C.
    """

    def __init__(self, is_saved: bool = True):
        super().__init__()
        self.is_saved, self.by_keyboard = is_saved, _by_keyboard.is_set()


class Interrupted(KeyboardInterrupt):
    """Ends a run after Ctrl-C. Attributes as of `Preempted`."""

    by_keyboard = True

    def __init__(self, is_saved: bool):
        super().__init__()
        self.is_saved = is_saved


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Records SIGTERM, SIGHUP and the first Ctrl-C instead of ending; the second Ctrl-C raises KeyboardInterrupt.

    If this process joins others within the block, SIGHUP and Ctrl-C raise KeyboardInterrupt, because one of several
    cannot save alone, and JAX handles SIGTERM, which `is_requested` does not report. Does nothing if it has joined them
    before, or outside the main thread, where Python allows no handler.
    """
    if threading.current_thread() is not threading.main_thread() or distributed.num_processes() > 1:
        yield
        return
    try:
        with handling(_note):
            yield
    finally:
        _requested.clear()
        _by_keyboard.clear()


@contextlib.contextmanager
def handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handles SIGTERM, SIGHUP and SIGINT within the block, except those that are ignored, as under nohup."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    before = {each: earlier for each, earlier in before.items() if earlier is not signal.SIG_IGN}
    for each in before:
        signal.signal(each, handler)
    try:
        yield
    finally:
        for each, earlier in before.items():
            signal.signal(each, earlier)


def _note(number: int, frame: FrameType | None) -> None:
    if number != signal.SIGTERM and distributed.num_processes() > 1:  # one of several cannot save alone
        raise KeyboardInterrupt
    if number == signal.SIGINT:
        if _by_keyboard.is_set():
            raise KeyboardInterrupt
        _by_keyboard.set()
        with contextlib.suppress(OSError):  # Ctrl-C also ends the reader of `2>&1 | tee log`
            os.write(STDERR, SAYS)  # unlike sys.stderr, safe inside a handler
    _requested.set()


def is_requested() -> bool:
    """Returns whether a request to stop has arrived."""
    return _requested.is_set()


def check() -> None:
    """Raises Preempted if a request to stop has arrived, or the work of this thread was abandoned."""
    if is_requested() or threading.current_thread() in _abandoned:
        raise Preempted


def run(work: Callable[[], T]) -> T:
    """Returns the result of `work`, a function that may be abandoned at any time. Between its programs it should call
    `check`, because devices that are busy delay the checkpoint.

    `work` runs in a separate thread, because Python handles signals only between bytecode instructions of the main
    thread, and a match or a compilation may be one native call.

    Raises:
      Preempted: a request to stop has arrived. `work` continues in the background until it calls `check`, even if
        another run has started by then, as in a notebook.
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
    try:
        while thread.is_alive():
            check()
            thread.join(0.05)
    except BaseException:
        _abandoned.add(thread)
        raise
    if errors:
        raise errors[0]
    return results[0]
