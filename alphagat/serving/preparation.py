"""Prepares programs on threads of its own, so that evaluations go on while others compile."""

import collections
import statistics
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

FIRST_ESTIMATE_S = 10.0  # until a program is ready; the compilation of a shipped network on two cores
NUM_RECENT = 8  # durations of the estimate

Evaluate = Callable[[Any], Any]  # states [B] -> a pytree of arrays with leading axis [B]


class Progress(NamedTuple):
    """The state of one program.

    Attributes:
      is_ready: whether it answers without delay.
      has_failed: whether its last preparation failed; it is prepared again only on demand.
      elapsed_s: since its preparation began; 0 if it has not.
    """

    is_ready: bool
    has_failed: bool
    elapsed_s: float


class Preparation:
    """Prepares each program once. Thread-safe.

    Programs in demand come first. One of the two threads prepares only these, so that such a program never waits for
    one that is prepared ahead, and nothing is begun ahead while one in demand is prepared, which would slow it down.
    """

    def __init__(
        self,
        prepare: Callable[[Any], Evaluate],
        finish: Callable[[Hashable, Evaluate | BaseException], None],
    ):
        """Starts the threads.

        Args:
          prepare: returns the evaluation function of a program; takes long.
          finish: receives the result, or the error, of a program. After an error the program is prepared again at the
            next demand.
        """
        self._prepare, self._finish = prepare, finish
        self._changed = threading.Condition()  # guards the fields below
        self._demanded: collections.deque[Hashable] = collections.deque()
        self._ahead: collections.deque[Hashable] = collections.deque()
        self._last: collections.deque[Hashable] = collections.deque()
        self._begun: dict[Hashable, float] = {}  # by program, in seconds of the monotonic clock
        self._ready: set[Hashable] = set()
        self._failed: set[Hashable] = set()
        self._urgent: set[Hashable] = set()  # in demand and not ready
        self._durations: collections.deque[float] = collections.deque(maxlen=NUM_RECENT)
        self._closed = False
        for takes_ahead in (False, True):
            threading.Thread(target=self._work, args=(takes_ahead,), name="preparation", daemon=True).start()

    def demand(self, program: Hashable) -> None:
        """Prepares a program as soon as possible."""
        with self._changed:
            self._failed.discard(program)
            if program not in self._ready:
                self._urgent.add(program)
            if program not in self._begun and program not in self._demanded:
                self._demanded.append(program)
                self._changed.notify_all()

    def withdraw(self, program: Hashable) -> None:
        """Ends the demand for a program. A preparation that has begun goes on."""
        with self._changed:
            if program in self._demanded:
                self._demanded.remove(program)
                self._urgent.discard(program)
                self._changed.notify_all()

    def prepare_ahead(self, programs: Iterable[Hashable]) -> None:
        """Prepares programs when nothing is in demand. Replaces those of earlier calls that have not begun."""
        with self._changed:
            self._ahead = collections.deque(programs)
            self._changed.notify_all()

    def prepare_last(self, program: Hashable) -> None:
        """Prepares a program when there is nothing else to prepare."""
        with self._changed:
            if program not in self._last:
                self._last.append(program)
                self._changed.notify_all()

    def progress(self, program: Hashable) -> Progress:
        with self._changed:
            begun = self._begun.get(program)
            elapsed = 0.0 if begun is None else time.monotonic() - begun
            return Progress(program in self._ready, program in self._failed, elapsed)

    def estimate_s(self) -> float:
        """Returns the expected duration of a preparation."""
        with self._changed:
            return statistics.median(self._durations) if self._durations else FIRST_ESTIMATE_S

    def close(self) -> None:
        """Ends the threads after the preparations in progress, without waiting for them."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _work(self, takes_ahead: bool) -> None:
        while (program := self._next(takes_ahead)) is not None:
            result: Evaluate | BaseException
            try:
                result = self._prepare(program)
            except BaseException as error:
                result = error
            with self._changed:
                self._urgent.discard(program)
                if isinstance(result, BaseException):
                    del self._begun[program]
                    self._failed.add(program)
                else:
                    self._durations.append(time.monotonic() - self._begun[program])
                    self._ready.add(program)
                self._changed.notify_all()
            self._finish(program, result)

    def _next(self, takes_ahead: bool) -> Hashable | None:
        """Waits for the next program; None once closed."""
        with self._changed:
            while not self._closed:
                may_look_ahead = takes_ahead and not self._urgent
                queues = (self._demanded, self._ahead, self._last) if may_look_ahead else (self._demanded,)
                for queue in queues:
                    while queue:
                        program = queue.popleft()
                        if program not in self._begun and program not in self._failed:
                            self._begun[program] = time.monotonic()
                            return program
                self._changed.wait()
            return None
