"""Requests to stop one of several processes."""

import os
import signal

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
