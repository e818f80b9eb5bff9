"""Requests to stop one of several processes."""

import os
import signal
import threading
from collections.abc import Callable

import pytest

from alphagat.runtime import distributed, preemption


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_one_of_several_processes_ends_at_once(monkeypatch, number):
    """It cannot save alone."""
    with preemption.listening():
        monkeypatch.setattr(distributed, "num_processes", lambda: 2)  # it connects later
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        assert not preemption.is_requested()


def unread_pipe() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize("open_output", [unread_pipe, lambda: os.open("/dev/full", os.O_WRONLY)], ids=("pipe", "full"))
def test_an_interrupt_counts_even_if_nobody_can_be_told(monkeypatch, open_output: Callable[[], int]):
    monkeypatch.setattr(preemption, "STDERR", open_output())
    with preemption.listening():
        signal.raise_signal(signal.SIGINT)
        assert preemption.is_requested()
    os.close(preemption.STDERR)


def test_abandoned_work_stops_although_the_request_is_over():
    """As in a notebook: after an interrupt, the run is resumed in the same process."""
    is_over, ended, endings = threading.Event(), threading.Event(), []

    def work() -> None:
        is_over.wait(10)
        try:
            preemption.check()
            endings.append("went on")
        except preemption.Preempted:
            endings.append("stopped")
        ended.set()

    with preemption.listening():
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(preemption.Preempted):
            preemption.run(work)
    is_over.set()
    assert ended.wait(10)
    assert endings == ["stopped"]
    assert preemption.run(lambda: preemption.check() or "new work") == "new work"
