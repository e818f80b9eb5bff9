"""Traces of the requested iterations, and a memory profile after a signal."""

import signal
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from alphagat.errors import UserError
from alphagat.training.profiling import Profiler, parse_span


def profiler_of(folder: Path, start: int, stop: int) -> Profiler:
    profiler = Profiler(folder)
    profiler.plan((start, stop))
    return profiler


def test_parse_span():
    assert parse_span("3:12", 12) == (3, 12)
    for wrong in ("3", "4:3", "0:2", "a:b", "1:2:3", "3:13", "13:14"):
        with pytest.raises(UserError, match=f"--profile {wrong}: write START:STOP.* from 1 to 12 \\("):
            parse_span(wrong, 12)


def test_a_span_that_is_done_is_reported(tmp_path):
    profiler = profiler_of(tmp_path, 2, 3)
    assert profiler.opening_lines(2) == []
    assert profiler.opening_lines(3) == ["--profile 2:3 traces nothing: these iterations are done"]
    assert Profiler(tmp_path).opening_lines(3) == []


def test_traces_only_the_span(tmp_path):
    profiler, lines = profiler_of(tmp_path, 2, 3), []
    with profiler.listening():
        for iteration in range(1, 6):
            profiler.before(iteration)
            assert profiler._is_tracing == (iteration in (2, 3))
            lines += profiler.after(iteration, jnp.ones(3) * iteration)
    assert len(lines) == 1
    assert "trace of iterations 2 to 3" in lines[0]
    assert list((tmp_path / "profiles").rglob("*.xplane.pb"))


def test_a_trace_ends_with_the_run(tmp_path):
    profiler = profiler_of(tmp_path, 1, 100)
    with profiler.listening():
        profiler.before(1)
        profiler.after(1, jnp.ones(3))
    assert list((tmp_path / "profiles").rglob("*.xplane.pb"))


def test_a_signal_writes_one_memory_profile(tmp_path):
    profiler = Profiler(tmp_path)
    with profiler.listening():
        assert profiler.after(4, None) == []
        signal.raise_signal(signal.SIGUSR1)
        (line,) = profiler.after(5, None)
        assert profiler.after(6, None) == []
    assert "memory_5.prof" in line
    assert (tmp_path / "profiles" / "memory_5.prof").stat().st_size > 0


def test_each_of_several_processes_has_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    for rank in range(2):
        monkeypatch.setattr(jax, "process_index", lambda rank=rank: rank)
        profiler = profiler_of(tmp_path, 1, 1)
        with profiler.listening():
            signal.raise_signal(signal.SIGUSR1)
            profiler.before(1)
            profiler.after(1, jnp.ones(3))
        folder = tmp_path / "profiles" / f"process_{rank}"
        assert len(list(folder.rglob("*.xplane.pb"))) == len(list(folder.glob("memory_1.prof"))) == 1
