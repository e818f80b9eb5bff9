"""Profiling a run: traces of iterations, device memory profiles, and hits of the compile cache."""

import contextlib
import functools
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from alphagat.bounds import shown
from alphagat.errors import UserError

PROFILES_FOLDER = "profiles"


def parse_span(text: str, num_iterations: int) -> tuple[int, int]:
    """Reads `START:STOP`, the first and last iteration of a trace of a run. Raises UserError."""
    match = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]) <= num_iterations:
        raise UserError(
            f"--profile {shown(text)}: write START:STOP, the first and the last iteration to trace, from 1 to "
            f"{num_iterations} (config.num_iterations)"
        )
    return int(match[1]), int(match[2])


class Profiler:
    """Traces some iterations, and writes a memory profile after SIGUSR1, into `profiles/` of the run.

    Each of several processes has a folder of its own there, such as `process_0/`.
    """

    def __init__(self, folder: Path):
        """Traces nothing until `plan`."""
        self._profiles = folder / PROFILES_FOLDER
        self._span: tuple[int, int] | None = None
        self._is_tracing = False
        self._asked = threading.Event()

    @property
    def _folder(self) -> Path:
        return self._profiles / f"process_{jax.process_index()}" if jax.process_count() > 1 else self._profiles

    def plan(self, span: tuple[int, int] | None) -> None:
        """Sets the first and last iteration of the trace; None: no trace."""
        self._span = span

    def opening_lines(self, done: int) -> list[str]:
        """Returns what to say at the start of a run that resumes after iteration `done`."""
        if not self._span or self._span[1] > done:
            return []
        return [f"--profile {self._span[0]}:{self._span[1]} traces nothing: these iterations are done"]

    def before(self, iteration: int) -> None:
        """Starts the trace if it is due. Call it before each iteration starts."""
        if self._span and not self._is_tracing and self._span[0] <= iteration <= self._span[1]:
            jax.profiler.start_trace(str(self._folder))
            self._is_tracing = True

    def after(self, iteration: int, results: Any) -> list[str]:
        """Ends the trace and writes a memory profile if due; returns lines to show. Call it after each start with its
        results.
        """
        lines = []
        if self._is_tracing and self._span and iteration >= self._span[1]:
            jax.block_until_ready(results)
            lines.append(f"trace of iterations {self._span[0]} to {self._span[1]}: {self._folder} (xprof, Perfetto)")
            self.close()
        if self._asked.is_set():
            self._asked.clear()
            self._folder.mkdir(parents=True, exist_ok=True)
            file = self._folder / f"memory_{iteration}.prof"
            jax.profiler.save_device_memory_profile(str(file))
            lines.append(f"device memory: {file} (pprof)")
        return lines

    def close(self) -> None:
        if self._is_tracing:
            self._is_tracing, self._span = False, None
            jax.profiler.stop_trace()

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Handles SIGUSR1 inside the context, in the main thread only; ends a running trace on exit."""
        listens = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGUSR1, lambda *_: self._asked.set()) if listens else None
        try:
            yield
        finally:
            self.close()
            if listens:
                signal.signal(signal.SIGUSR1, before)


def cache_hits() -> int:
    """Returns the number of programs read from the compile cache since the first call."""
    return len(_hits())


@functools.cache
def _hits() -> list[str]:
    """Registers a listener, once; returns the list to which it adds each hit of the compile cache."""
    hits: list[str] = []

    def note(event: str, **_: Any) -> None:
        if event == "/jax/compilation_cache/cache_hits":
            hits.append(event)

    jax.monitoring.register_event_listener(note)
    return hits
