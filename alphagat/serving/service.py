"""Batches evaluation requests from many threads.

Each request names its program, such as a board with a number of simulations. A batch holds requests of one program, and
programs with waiting requests take turns, so that none starves. Requests wait until their program is prepared. It is
prepared for single positions first, and for a larger batch size once that many requests have waited. Until then,
batches are smaller.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

import jax

from alphagat.errors import ServiceError, UserError
from alphagat.games.batches import stack, take
from alphagat.serving.limits import FLAGS
from alphagat.serving.preparation import Evaluate, Preparation, Progress
from alphagat.serving.service_metrics import ServiceMetrics
from alphagat.wording import counted

FACTOR = 4  # ratio of successive batch sizes: few programs to compile, and little padding for a single position


class Busy(Exception):
    """Rejects a request because the queue is full or the service is closed.

    Attributes:
      retry_after_s: whole seconds to wait before the next attempt.
    """

    retry_after_s = 1


@dataclasses.dataclass(frozen=True, eq=False)
class _Request:
    state: Any
    answer: Future
    arrived: float  # seconds of the monotonic clock


def batch_sizes(max_batch: int) -> tuple[int, ...]:
    """Returns the sizes that batches are padded to: 1, 4, 16 and so on, up to `max_batch`."""
    sizes = [1]
    while sizes[-1] * FACTOR < max_batch:
        sizes.append(sizes[-1] * FACTOR)
    return tuple(sorted({*sizes, max_batch}))


class BatchService:
    """Evaluates states in batches on its own thread. All methods are thread-safe.

    `Future.cancel` removes a request from the queue, unless its evaluation has started.

    Attributes:
      failure: how the thread ended by an exception outside of a single evaluation; None while it is alive.
    """

    def __init__(
        self, prepare: Callable[[Any], Evaluate], *, max_batch: int, max_wait_ms: float, max_queue: int
    ) -> None:
        """Starts the thread.

        Args:
          prepare: returns the evaluation function of a program, compiled for one state; called once per program, on
            another thread, where the function is compiled for larger batches by calls.
          max_batch: most positions per batch.
          max_wait_ms: how long an idle device waits for the next requests of clients it has just answered.
          max_queue: most waiting requests; further ones are rejected.

        Raises:
          UserError: a size is out of range.
        """
        for name, value in (("max_batch", max_batch), ("max_wait_ms", max_wait_ms), ("max_queue", max_queue)):
            if not FLAGS[name].accept(value):
                raise UserError(f"--{name} {value}: it must be {FLAGS[name]}")
        self._sizes, self._max_wait_s, self._max_queue = batch_sizes(max_batch), max_wait_ms / 1000, max_queue
        self._prepare = prepare
        self._programs: dict[Hashable, Evaluate] = {}  # those that are ready
        self._prepared: dict[Hashable, set[int]] = {}  # by ready program, the batch sizes that are compiled
        self._examples: dict[Hashable, Any] = {}  # by program, a state to compile larger batches with
        self._waiting: dict[Hashable, dict[_Request, None]] = {}  # by program, the next one first; no empty values
        # Guards `_programs`, `_prepared`, `_examples`, `_waiting`, `_expected`, `_free_since`, `_closed` and `failure`.
        self._changed = threading.Condition()
        self._expected: tuple[Hashable, int] = (None, 0)  # the last program, and the number of requests expected soon
        self._free_since = 0.0
        self._closed = False
        self.failure: str | None = None
        self._metrics = ServiceMetrics()
        self._preparation = Preparation(self._compile, self._finish)
        self._thread = threading.Thread(target=self._work, name="evaluation", daemon=True)
        self._thread.start()

    def submit(self, program: Hashable, state: Any) -> Future:
        """Queues one state, a pytree of arrays, and returns a future of its row of the batch's evaluation.

        Raises:
          Busy: the queue is full, or the service has been closed.
          ServiceError: the thread has failed.
        """
        request = _Request(state, Future(), time.monotonic())
        with self._changed:
            self.check()
            if self._closed or self._num_waiting() >= self._max_queue:
                self._metrics.count("refused")
                raise Busy(
                    "the service has been closed"
                    if self._closed
                    else f"{counted(self._max_queue, 'request')} already waiting"
                )
            self._waiting.setdefault(program, {})[request] = None
            self._metrics.count("accepted")
            if program not in self._programs:
                self._preparation.demand((program, 1))
            self._changed.notify_all()
        request.answer.add_done_callback(lambda answer: answer.cancelled() and self._forget(program, request))
        return request.answer

    def prepare_ahead(self, programs: Iterable[Hashable]) -> None:
        """Prepares programs while none is in demand. Replaces those of earlier calls that have not begun."""
        self._preparation.prepare_ahead([(program, 1) for program in programs])

    def progress(self, program: Hashable) -> Progress:
        """Returns how far the preparation of a program is."""
        return self._preparation.progress((program, 1))

    def estimate_s(self) -> float:
        """Returns the expected duration of a preparation."""
        return self._preparation.estimate_s()

    def metrics(self) -> dict[str, Any]:
        """Returns counters, the current queue length, batches by size, and latency percentiles in ms."""
        with self._changed:
            queue_length = self._num_waiting()
        return {"queue_length": queue_length, **self._metrics.summary()}

    def close(self) -> None:
        """Finishes the current batch, fails waiting requests with `Busy`, and joins the thread. Idempotent."""
        with self._changed:
            self._closed = True
            left = self._take_all()
            self._changed.notify_all()
        self._fail(left, Busy("the service has been closed"), "refused")
        self._preparation.close()
        self._thread.join()

    def check(self) -> None:
        """Raises ServiceError if the thread has failed."""
        if self.failure is not None:
            raise ServiceError(self.failure)

    def __enter__(self) -> "BatchService":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _num_waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    def _forget(self, program: Hashable, request: _Request) -> None:
        """Removes a cancelled request from the queue, and with the last one the demand for its program."""
        self._metrics.count("cancelled")
        with self._changed:
            requests = self._waiting.get(program, {})
            if requests.pop(request, request) is None and not requests:
                del self._waiting[program]
                self._preparation.withdraw((program, 1))

    def _compile(self, program_and_size: Any) -> Evaluate:
        """Prepares a program for batches of one size, on a thread of `Preparation`."""
        program, size = program_and_size
        if size == 1:
            return self._prepare(program)
        with self._changed:
            evaluate, state = self._programs[program], self._examples[program]
        evaluate(stack([state] * size))
        return evaluate

    def _finish(self, program_and_size: Any, result: Evaluate | BaseException) -> None:
        """Receives a prepared program, or fails its requests. An error that is no `Exception` ends the service."""
        program, size = program_and_size
        if isinstance(result, BaseException) and not isinstance(result, Exception):
            return self._end(result)
        with self._changed:
            if not isinstance(result, Exception):
                self._programs[program] = result
                self._prepared.setdefault(program, set()).add(size)
                return self._changed.notify_all()
            if size > 1:  # batches stay smaller
                return None
            requests = [each for each in self._waiting.pop(program, {}) if each.answer.set_running_or_notify_cancel()]
        self._fail(requests, result, "failed")

    def _end(self, error: BaseException, batch: Sequence[_Request] = ()) -> None:
        """Fails all requests, since no others will be answered."""
        with self._changed:
            self.failure = f"the evaluation thread failed with {type(error).__name__}: {error}; restart the server"
            left = self._take_all()
            self._closed = True
            self._changed.notify_all()
        unanswered = [*(request for request in batch if not request.answer.done()), *left]
        self._fail(unanswered, ServiceError(self.failure), "failed")

    def _take_all(self) -> list[_Request]:
        """Empties the queue, and returns the requests that were not cancelled."""
        left = [request for requests in self._waiting.values() for request in requests]
        self._waiting.clear()
        return [request for request in left if request.answer.set_running_or_notify_cancel()]

    def _fail(self, requests: Sequence[_Request], error: BaseException, count: str) -> None:
        self._metrics.count(count, len(requests))
        for request in requests:
            request.answer.set_exception(error)

    def _work(self) -> None:
        batch: Sequence[_Request] = ()
        try:
            while (found := self._next_batch()) is not None:
                program, batch = found
                if batch:
                    self._answer(program, batch)
        except BaseException as error:  # without this thread every request would wait for ever
            self._end(error, batch)

    def _next_batch(self) -> tuple[Hashable, list[_Request]] | None:
        """Waits for requests and returns those of one program; None once the service is closed.

        Clients often send their next request right after an answer, so the batch waits up to `max_wait_ms` for them.
        Otherwise clients would split into two groups that take turns, at the cost of a full batch each. A single client
        never waits.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or any(each in self._programs for each in self._waiting))
            if self._closed:
                return None
            program = next(each for each in self._waiting if each in self._programs)
            enough = min(max(self._prepared[program]), self._expected[1] if self._expected[0] == program else 1)
            self._changed.wait_for(
                lambda: self._closed or len(self._waiting.get(program, ())) >= enough,
                max(0.0, self._free_since + self._max_wait_s - time.monotonic()),
            )
            requests = list(self._waiting.pop(program, ()))
            size = self._size_for(program, requests)
            if len(requests) > size:
                self._waiting[program] = dict.fromkeys(requests[size:])  # moves to the end of the order
        return program, [request for request in requests[:size] if request.answer.set_running_or_notify_cancel()]

    def _size_for(self, program: Hashable, requests: Sequence[_Request]) -> int:
        """Returns the largest prepared size up to the one that the requests need, and requests that one if it is not
        prepared.
        """
        wanted = next((size for size in self._sizes if size >= len(requests)), self._sizes[-1])
        if wanted not in self._prepared[program]:
            self._examples[program] = requests[0].state
            self._preparation.prepare_last((program, wanted))
        return max(size for size in self._prepared[program] if size <= wanted)

    def _answer(self, program: Hashable, requests: Sequence[_Request]) -> None:
        """Evaluates a batch and answers its requests. An error fails all of them, and the service continues."""
        try:
            rows = self._evaluate(program, [request.state for request in requests])
        except Exception as error:
            return self._fail(requests, error, "failed")
        now = time.monotonic()
        self._metrics.add_batch([now - request.arrived for request in requests])
        with self._changed:
            self._expected = program, len(self._waiting.get(program, ())) + len(requests)
            self._free_since = now
        for request, row in zip(requests, rows, strict=True):
            request.answer.set_result(row)

    def _evaluate(self, program: Hashable, states: list[Any]) -> list[Any]:
        """Pads to a prepared batch size, evaluates on the device, and returns one numpy row per state."""
        with self._changed:
            size = min(size for size in self._prepared[program] if size >= len(states))
        padded = states + states[-1:] * (size - len(states))
        outputs = jax.device_get(self._programs[program](stack(padded)))
        return [take(outputs, row) for row in range(len(states))]
