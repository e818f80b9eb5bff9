"""Tests the evaluation service with a stub for the device: routing of answers, batching and errors."""

import math
import re
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait

import numpy as np
import pytest

from alphagat.errors import ServiceError, UserError
from alphagat.serving.service import BatchService, Busy, batch_sizes

PATIENCE_S = 30  # reached only by failing tests


class Device:
    """Evaluates program n to n * 1000 + state. Batches wait at the gate, and negative states raise."""

    def __init__(self):
        self.gate, self.entered, self.batches = threading.Event(), threading.Semaphore(0), []
        self.gate.set()

    def prepare(self, program):
        def evaluate(states):
            self.batches.append((program, states.tolist()))
            self.entered.release()
            assert self.gate.wait(PATIENCE_S)
            if (states < 0).any():
                raise ValueError(f"bad state in {states.tolist()}")
            return {"value": program * 1000 + states, "state": states}

        return evaluate

    def hold(self):
        """Closes the gate to the following batches."""
        self.gate.clear()

    def occupied(self):
        """Waits until a batch is at the gate."""
        assert self.entered.acquire(timeout=PATIENCE_S)


@pytest.fixture
def device():
    return Device()


@pytest.fixture
def make(device):
    """Returns a factory of services that are closed at teardown."""
    services = []

    def make(max_batch=8, max_wait_ms=1.0, max_queue=1000):
        service = BatchService(device.prepare, max_batch=max_batch, max_wait_ms=max_wait_ms, max_queue=max_queue)
        service._prepared = {program: set(batch_sizes(max_batch)) for program in range(3)}  # as after some time
        services.append(service)
        return service

    yield make
    device.gate.set()
    for service in services:
        service.close()


def ending_the_thread(states):
    raise SystemExit("gone")  # not an Exception


def ask(service, program, state):
    return service.submit(program, np.int64(state))


def test_many_clients_get_their_own_answers(make, device):
    service = make(max_batch=8)

    def client(number):
        random = np.random.default_rng(number)
        for _ in range(50):
            program, state = int(random.integers(3)), int(random.integers(1000))
            answer = ask(service, program, state).result(PATIENCE_S)
            assert (answer["value"], answer["state"]) == (program * 1000 + state, state)
        return True

    with ThreadPoolExecutor(32) as pool:
        assert all(pool.map(client, range(32)))
    assert {len(states) for _, states in device.batches} <= {1, 4, 8}
    metrics = service.metrics()
    assert (metrics["accepted"], metrics["answered"], metrics["queue_length"]) == (1600, 1600, 0)
    assert sum(int(size) * number for size, number in metrics["batches"].items()) == 1600


def test_waiting_requests_are_batched_by_program(make, device):
    service = make()
    device.hold()
    first = ask(service, 0, 0)
    device.occupied()
    answers = [ask(service, program, state) for state in range(3) for program in (1, 2)]
    device.gate.set()
    wait([first, *answers], PATIENCE_S)
    assert [answer.result()["value"] for answer in answers] == [1000, 2000, 1001, 2001, 1002, 2002]
    assert device.batches == [(0, [0]), (1, [0, 1, 2, 2]), (2, [0, 1, 2, 2])]


def test_a_full_batch_does_not_wait_and_programs_take_turns(make, device):
    service = make(max_batch=2, max_wait_ms=10_000)  # longer than the test allows
    device.hold()
    start = [ask(service, 0, state) for state in range(2)]
    device.occupied()
    answers = [ask(service, program, state) for program, state in ((1, 0), (1, 1), (1, 2), (1, 3), (2, 0), (2, 1))]
    device.gate.set()
    assert not wait([*start, *answers], PATIENCE_S).not_done
    assert [program for program, _ in device.batches] == [0, 1, 2, 1]


def test_a_batch_waits_for_clients_just_answered(make, device):
    service = make(max_wait_ms=10_000)
    device.hold()
    first = ask(service, 0, 5)
    device.occupied()
    second = ask(service, 0, 6)
    device.gate.set()
    assert first.result(PATIENCE_S)["state"] == 5
    time.sleep(0.05)
    assert not second.done()
    assert ask(service, 0, 7).result(PATIENCE_S)["state"] == 7
    assert second.result(PATIENCE_S)["state"] == 6
    assert device.batches == [(0, [5]), (0, [6, 7, 7, 7])]


def test_the_wait_for_clients_is_limited(make, device):
    service = make(max_wait_ms=20)
    device.hold()
    ask(service, 0, 5)
    device.occupied()
    second = ask(service, 0, 6)
    device.gate.set()
    assert second.result(PATIENCE_S)["state"] == 6


def test_a_single_client_never_waits(make):
    service = make(max_wait_ms=10_000)
    for state in range(3):
        assert ask(service, 0, state).result(PATIENCE_S)["state"] == state
        assert ask(service, 1, state).result(PATIENCE_S)["value"] == 1000 + state


def test_a_full_queue_rejects_requests_until_there_is_room(make, device):
    service = make(max_batch=1, max_queue=2)
    device.hold()
    running = ask(service, 0, 0)
    device.occupied()
    waiting = [ask(service, 0, 1), ask(service, 1, 2)]
    with pytest.raises(Busy, match="2 requests already waiting"):
        ask(service, 0, 3)
    assert waiting[1].cancel()
    replacement = ask(service, 0, 4)
    device.gate.set()
    assert [answer.result(PATIENCE_S)["state"] for answer in (running, waiting[0], replacement)] == [0, 1, 4]
    assert service.metrics()["refused"] == 1


def test_cancelled_requests_are_not_evaluated(make, device):
    service = make()
    device.hold()
    ask(service, 0, 0)
    device.occupied()
    answers = [ask(service, 1, state) for state in range(6)]
    cancelled = [answers[1], answers[4]]
    assert all(answer.cancel() for answer in cancelled)
    alone = ask(service, 2, 7)
    assert alone.cancel()
    device.gate.set()
    kept = [answers[state].result(PATIENCE_S)["state"] for state in (0, 2, 3, 5)]
    assert kept == [0, 2, 3, 5]
    assert device.batches == [(0, [0]), (1, [0, 2, 3, 5])]
    for answer in cancelled:
        with pytest.raises(CancelledError):
            answer.result()
    assert service.metrics()["cancelled"] == 3


def test_a_running_request_cannot_be_cancelled(make, device):
    service = make()
    device.hold()
    running = ask(service, 0, 3)
    device.occupied()
    assert not running.cancel()
    with pytest.raises(TimeoutError):
        running.result(0.01)
    device.gate.set()
    assert running.result(PATIENCE_S)["state"] == 3


def test_an_error_fails_its_batch_only(make, device):
    service = make()
    device.hold()
    ask(service, 0, 0)
    device.occupied()
    bad, good = [ask(service, 1, state) for state in (4, -1, 5)], ask(service, 2, 6)
    device.gate.set()
    for answer in bad:
        with pytest.raises(ValueError, match=r"bad state in \[4, -1, 5, 5\]"):
            answer.result(PATIENCE_S)
    assert good.result(PATIENCE_S)["value"] == 2006
    assert ask(service, 1, 4).result(PATIENCE_S)["value"] == 1004
    assert service.metrics()["failed"] == 3


def test_an_error_in_prepare_fails_the_requests_of_its_program():
    def prepare(program):
        raise UserError(f"no {program}")

    with BatchService(prepare, max_batch=2, max_wait_ms=0, max_queue=5) as service:
        with pytest.raises(UserError, match="no board"):
            ask(service, "board", 1).result(PATIENCE_S)
        with pytest.raises(UserError, match="no other"):
            ask(service, "other", 1).result(PATIENCE_S)


def test_a_batch_size_is_compiled_aside_while_batches_are_smaller():
    threads, compiled, compiles = [], threading.Event(), threading.Event()

    def prepare(program):
        def evaluate(states):
            threads.append((threading.current_thread().name, len(states)))
            if threads[-1] == ("preparation", 4):
                compiles.set()
                assert compiled.wait(PATIENCE_S)
            if len(states) > 4:
                raise UserError("too large for the memory")
            return states + 1

        return evaluate

    def ask_for(numbers):
        answers = [ask(service, 0, number) for number in numbers]
        assert [answer.result(PATIENCE_S) for answer in answers] == [number + 1 for number in numbers]

    with BatchService(prepare, max_batch=16, max_wait_ms=0, max_queue=50) as service:
        with service._changed:  # so that they wait together
            answers = [ask(service, 0, number) for number in range(3)]
        assert [answer.result(PATIENCE_S) for answer in answers] == [1, 2, 3]
        assert compiles.wait(PATIENCE_S)
        ask_for([5])
        assert {size for name, size in threads if name == "evaluation"} == {1}
        compiled.set()
        while 4 not in service._prepared[0]:
            time.sleep(0.01)
        with service._changed:
            answers = [ask(service, 0, number) for number in range(7)]
        assert [answer.result(PATIENCE_S) for answer in answers] == list(range(1, 8))
        assert [size for name, size in threads if name == "evaluation"][-2:] == [4, 4]
        while ("preparation", 16) not in threads:
            time.sleep(0.01)
        ask_for(range(40))  # a size that fails is not used
        assert {size for name, size in threads if name == "evaluation"} == {1, 4}
        assert threads.count(("preparation", 16)) == 1


def test_close_finishes_the_running_batch_and_rejects_the_rest(make, device):
    service = make(max_batch=1)
    device.hold()
    running = ask(service, 0, 1)
    device.occupied()
    waiting, cancelled = ask(service, 0, 2), ask(service, 0, 3)
    cancelled.cancel()
    closer = threading.Thread(target=service.close)
    closer.start()
    with pytest.raises(Busy, match="closed"):
        waiting.result(PATIENCE_S)
    device.gate.set()
    assert running.result(PATIENCE_S)["state"] == 1
    closer.join(PATIENCE_S)
    assert not closer.is_alive()
    assert len(device.batches) == 1
    with pytest.raises(Busy, match="closed"):
        ask(service, 0, 4)
    service.close()


def test_states_are_pytrees_and_answers_are_rows():
    def prepare(_):
        return lambda states: (states["x"] + 1, states["y"][:, 0])

    with BatchService(prepare, max_batch=16, max_wait_ms=5, max_queue=100) as service:
        answers = [service.submit("sum", {"x": np.float32(n), "y": np.array([n, 0])}) for n in range(16)]
        assert [tuple(map(int, answer.result(PATIENCE_S))) for answer in answers] == [(n + 1, n) for n in range(16)]


def test_batch_sizes():
    assert batch_sizes(1) == (1,)
    assert batch_sizes(16) == (1, 4, 16)
    assert batch_sizes(48) == (1, 4, 16, 48)


@pytest.mark.parametrize(
    ("name", "values", "allowed"),
    [
        ("max_batch", (0, 4097, 10**20), "at least 1 and at most 4096"),
        ("max_queue", (0, 10**20), "at least 1 and at most 65536"),
        ("max_wait_ms", (-1, math.nan, math.inf, 10_001, 1e300), "at least 0 and at most 10000"),
    ],
)
def test_sizes_out_of_range_raise(name, values, allowed):
    for value in values:
        sizes = {"max_batch": 1, "max_wait_ms": 0, "max_queue": 1, name: value}
        with pytest.raises(UserError, match=re.escape(f"--{name} {value}: it must be {allowed}")):
            BatchService(lambda program: None, **sizes)


def test_a_failed_thread_answers_every_request(make, device):
    service = make(max_batch=1)
    device.hold()
    first = ask(service, 0, 5)
    device.occupied()
    waiting, other, cancelled = (ask(service, program, 6) for program in (0, 1, 2))
    cancelled.cancel()
    service._programs[0] = ending_the_thread
    device.gate.set()
    assert first.result(PATIENCE_S)["state"] == 5
    with pytest.raises(ServiceError, match="the evaluation thread failed with SystemExit: gone; restart the server"):
        waiting.result(PATIENCE_S)
    with pytest.raises(ServiceError, match="SystemExit"):
        other.result(PATIENCE_S)
    service._thread.join(PATIENCE_S)
    with pytest.raises(ServiceError, match="SystemExit"):
        ask(service, 0, 8)
    with pytest.raises(ServiceError, match="SystemExit"):
        service.check()
    assert service.metrics()["queue_length"] == 0


def test_an_error_between_batches_answers_every_request(make, device):
    service = make()
    device.hold()
    first = ask(service, 0, 5)
    device.occupied()
    service._max_wait_s = math.inf  # an OverflowError in the next wait
    waiting = ask(service, 0, 6)
    device.gate.set()
    assert first.result(PATIENCE_S)["state"] == 5
    with pytest.raises(ServiceError, match="OverflowError"):
        waiting.result(PATIENCE_S)
