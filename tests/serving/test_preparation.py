"""Tests the preparation of programs on threads."""

import threading
import time

import pytest

from alphagat.errors import UserError
from alphagat.serving.preparation import FIRST_ESTIMATE_S, Preparation
from alphagat.serving.service import BatchService

PATIENCE_S = 30  # reached only by failing tests


class Compiler:
    """Prepares each program when its gate opens."""

    def __init__(self):
        self.gates, self.begun, self.finished = {}, [], {}
        self.changed = threading.Condition()

    def gate(self, program):
        return self.gates.setdefault(program, threading.Event())

    def prepare(self, program):
        with self.changed:
            self.begun.append(program)
            self.changed.notify_all()
        assert self.gate(program).wait(PATIENCE_S)
        if str(program).startswith("broken"):
            raise UserError(f"no {program}")
        return f"ready {program}"

    def prepare_identity(self, program):
        self.prepare(program)
        return lambda states: states

    def finish(self, program, result):
        with self.changed:
            self.finished[program] = result
            self.changed.notify_all()

    def release(self, program):
        """Lets the preparation of a program end, and waits for its result."""
        self.gate(program).set()
        self.wait_for(lambda: program in self.finished)

    def wait_for(self, condition):
        with self.changed:
            assert self.changed.wait_for(condition, PATIENCE_S)


@pytest.fixture
def compiler():
    compiler = Compiler()
    yield compiler
    for gate in compiler.gates.values():
        gate.set()


@pytest.fixture
def preparation(compiler):
    preparation = Preparation(compiler.prepare, compiler.finish)
    yield preparation
    preparation.close()


def test_a_program_in_demand_does_not_wait_for_one_prepared_ahead(compiler, preparation):
    preparation.prepare_ahead(["slow", "next"])
    compiler.wait_for(lambda: compiler.begun == ["slow"])
    compiler.gate("wanted").set()
    preparation.demand("wanted")
    compiler.wait_for(lambda: compiler.finished == {"wanted": "ready wanted"})
    assert compiler.begun == ["slow", "wanted"]
    assert preparation.progress("wanted").is_ready
    assert not preparation.progress("slow").is_ready
    assert preparation.progress("slow").elapsed_s > 0
    assert preparation.progress("next") == (False, False, 0.0)


def test_nothing_is_begun_ahead_while_a_program_in_demand_is_prepared(compiler, preparation):
    preparation.demand("urgent")
    compiler.wait_for(lambda: compiler.begun == ["urgent"])
    preparation.prepare_ahead(["ahead"])
    preparation.demand("second")
    compiler.wait_for(lambda: len(compiler.begun) == 2)
    compiler.release("urgent")
    assert compiler.begun == ["urgent", "second"]
    compiler.release("second")
    compiler.wait_for(lambda: compiler.begun == ["urgent", "second", "ahead"])


def test_a_program_begun_ahead_that_comes_into_demand_holds_the_next_back(compiler, preparation):
    preparation.prepare_ahead(["broken", "next"])
    compiler.wait_for(lambda: compiler.begun == ["broken"])
    preparation.demand("broken")
    preparation.demand("urgent")
    compiler.wait_for(lambda: compiler.begun == ["broken", "urgent"])
    compiler.release("broken")
    assert compiler.begun == ["broken", "urgent"]
    compiler.release("urgent")
    compiler.wait_for(lambda: compiler.begun == ["broken", "urgent", "next"])


def test_a_program_no_longer_in_demand_is_not_prepared(compiler, preparation):
    for program in ("one", "other", "abandoned", "wanted"):
        preparation.demand(program)
    compiler.wait_for(lambda: set(compiler.begun) == {"one", "other"})
    preparation.withdraw("abandoned")
    preparation.withdraw("never in demand")
    compiler.release("one")
    compiler.wait_for(lambda: len(compiler.begun) == 3)
    assert compiler.begun[-1] == "wanted"
    for program in ("other", "wanted"):
        compiler.release(program)
    preparation.demand("abandoned")
    compiler.wait_for(lambda: compiler.begun[-1] == "abandoned")


def test_a_program_no_longer_in_demand_holds_nothing_back(compiler, preparation):
    preparation.demand("one")
    preparation.demand("other")
    compiler.wait_for(lambda: len(compiler.begun) == 2)
    preparation.demand("abandoned")
    preparation.prepare_ahead(["ahead"])
    preparation.withdraw("abandoned")
    for program in ("one", "other"):
        compiler.release(program)
    compiler.wait_for(lambda: compiler.begun[2:] == ["ahead"])


def test_each_program_is_prepared_once(compiler, preparation):
    for program in ("a", "b"):
        compiler.gate(program).set()
    for _ in range(3):
        preparation.demand("a")
        preparation.prepare_ahead(["a", "b"])
    compiler.wait_for(lambda: set(compiler.finished) == {"a", "b"})
    preparation.demand("a")
    preparation.prepare_ahead(["b"])
    compiler.gate("c").set()
    preparation.demand("c")
    compiler.wait_for(lambda: "c" in compiler.finished)
    assert sorted(compiler.begun) == ["a", "b", "c"]


def test_the_last_call_replaces_programs_ahead_that_have_not_begun(compiler, preparation):
    preparation.prepare_ahead(["first", "second"])
    compiler.wait_for(lambda: compiler.begun == ["first"])
    preparation.prepare_ahead(["third"])
    for program in ("first", "third"):
        compiler.gate(program).set()
    compiler.wait_for(lambda: set(compiler.finished) == {"first", "third"})
    assert compiler.begun == ["first", "third"]


def test_after_an_error_a_program_is_prepared_again(compiler, preparation):
    compiler.gate("broken").set()
    for number in (1, 2):
        preparation.demand("broken")
        compiler.wait_for(lambda number=number: len(compiler.begun) == number and "broken" in compiler.finished)
        assert isinstance(compiler.finished.pop("broken"), UserError)
    assert preparation.progress("broken") == (False, True, 0.0)


def test_a_program_that_failed_is_prepared_again_only_in_demand(compiler, preparation):
    for program in ("broken", "next", "after"):
        compiler.gate(program).set()
    preparation.prepare_ahead(["broken", "next"])
    compiler.wait_for(lambda: set(compiler.finished) == {"broken", "next"})
    preparation.prepare_ahead(["broken", "after"])
    compiler.wait_for(lambda: "after" in compiler.finished)
    assert compiler.begun == ["broken", "next", "after"]
    preparation.demand("broken")
    compiler.wait_for(lambda: compiler.begun == ["broken", "next", "after", "broken"])


def test_the_last_of_all_is_what_need_not_be_ready_soon(compiler, preparation):
    preparation.demand("urgent")
    compiler.wait_for(lambda: compiler.begun == ["urgent"])
    preparation.prepare_last("last")
    preparation.prepare_last("last")
    preparation.prepare_ahead(["ahead"])
    for program in ("urgent", "ahead", "last"):
        compiler.release(program)
    assert compiler.begun == ["urgent", "ahead", "last"]


def test_the_estimate_is_the_median_of_the_durations(compiler, preparation):
    assert preparation.estimate_s() == FIRST_ESTIMATE_S
    begin = time.monotonic()
    compiler.gate("a").set()
    preparation.demand("a")
    compiler.wait_for(lambda: "a" in compiler.finished)
    assert 0 < preparation.estimate_s() < time.monotonic() - begin


def test_other_programs_are_answered_while_one_is_prepared(compiler):
    compiler.gate("fast").set()
    with BatchService(compiler.prepare_identity, max_batch=1, max_wait_ms=0, max_queue=4) as service:
        slow = service.submit("slow", 1)
        assert service.submit("fast", 2).result(PATIENCE_S) == 2
        assert not slow.done()
        assert [service.progress(program).is_ready for program in ("slow", "fast")] == [False, True]
        compiler.gate("slow").set()
        assert slow.result(PATIENCE_S) == 1


def test_cancelled_requests_end_the_demand_for_their_program(compiler):
    with BatchService(compiler.prepare_identity, max_batch=1, max_wait_ms=0, max_queue=8) as service:
        for program in ("one", "other"):
            service.submit(program, 1)
        compiler.wait_for(lambda: set(compiler.begun) == {"one", "other"})
        answers = [service.submit(program, state) for program in ("abandoned", "shared") for state in (1, 2)]
        wanted = service.submit("wanted", 3)
        for answer in answers[:3]:
            assert answer.cancel()
        for program in ("one", "shared", "wanted"):
            compiler.gate(program).set()
        assert wanted.result(PATIENCE_S) == 3
        assert answers[3].result(PATIENCE_S) == 2
        assert compiler.begun[2:] == ["shared", "wanted"]
