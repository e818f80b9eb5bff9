"""Tests the supervisor on small programs that die, hang or end."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from alphagat.errors import REQUEUE, UserError
from alphagat.runtime import supervisor
from alphagat.runtime.supervisor import Patience, supervise

ROOT = Path(__file__).parents[2]


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Returns a function that writes a module. Its lines may use `rank`, `start` (restarts so far) and `progress()`."""

    def make(lines: str) -> list[str]:
        head = f"""
            import os, pathlib, sys, time
            folder = pathlib.Path({str(tmp_path)!r})
            rank = int(sys.argv[sys.argv.index("--node_rank") + 1])
            starts = folder / f"starts_{{rank}}"
            start = len(starts.read_text()) if starts.exists() else 0
            starts.write_text("x" * (start + 1))
            def progress():
                with (folder / "progress").open("a") as stream:
                    stream.write("x\\n")
        """
        (tmp_path / "stand_in.py").write_text(textwrap.dedent(head) + textwrap.dedent(lines))
        return ["stand_in"]

    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(supervisor, "LONGEST_PAUSE", 0.01)
    return make


def run(command, folder, *, restarts=2, hang_seconds=60.0, processes=2):
    said: list[str] = []
    patience = Patience(restarts=restarts, hang_seconds=hang_seconds, grace_seconds=60.0)
    return lambda: (supervise(command, processes, 0, folder / "progress", patience, said.append), said)


def starts(folder: Path) -> int:
    """Returns how often all were started. The maximum, since a process killed early may not have counted its start."""
    return max(len(file.read_text()) for file in folder.glob("starts_*"))


def test_all_start_together_and_end(program, tmp_path):
    command = program("(folder / f'args_{rank}').write_text(' '.join(sys.argv[1:]))")
    assert run(command, tmp_path, processes=3)() == (0, [])
    lines = [(tmp_path / f"args_{rank}").read_text() for rank in range(3)]
    address = lines[0].split()[-1]
    assert lines == [f"--nodes 3 --node_rank {rank} --coordinator {address}" for rank in range(3)]


def test_the_port_is_kept_for_the_first_process():
    with supervisor._reserved_port() as port:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        with socket.socket() as first:
            first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            first.bind(("", port))
            first.listen()
            socket.create_connection(("127.0.0.1", port), timeout=10).close()


def test_a_file_of_the_current_folder_replaces_no_module(program, tmp_path, monkeypatch):
    """A config may be called random.py."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "random.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path / "here")
    assert run(program("import random"), tmp_path)() == (0, [])


def test_each_process_sees_its_own_gpu(program, tmp_path, monkeypatch):
    command = program("(folder / f'gpu_{rank}').write_text(os.environ['CUDA_VISIBLE_DEVICES'])")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,3")
    patience = Patience(restarts=0, hang_seconds=60.0, grace_seconds=60.0)
    assert supervise(command, 2, supervisor.count_gpus(), tmp_path / "progress", patience, print) == 0
    assert [(tmp_path / f"gpu_{rank}").read_text() for rank in range(2)] == ["5", "3"]


@pytest.mark.parametrize(("visible", "gpus"), [("5,3", ["5", "3"]), (" 2, 1,", ["2", "1"]), ("-1", []), ("", [])])
def test_gpus_are_those_that_are_visible(visible: str, gpus: list[str], monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert supervisor._visible_gpus() == gpus
    assert supervisor.count_gpus() == len(gpus)


def test_ctrl_c_reaches_the_processes_only_through_the_supervisor(program, tmp_path):
    command = program("(folder / f'leads_{rank}').write_text(str(os.getpgrp() == os.getpid()))")
    assert run(command, tmp_path)() == (0, [])
    assert [(tmp_path / f"leads_{rank}").read_text() for rank in range(2)] == ["True", "True"]


def test_one_death_restarts_all(program, tmp_path):
    """The other process would sleep for a minute."""
    command = program("""
        if start == 0:
            os.kill(os.getpid(), 9) if rank == 1 else time.sleep(60)
    """)
    status, said = run(command, tmp_path)()
    assert (status, starts(tmp_path)) == (0, 2)
    assert said[0] == "process 1 ended with status -9"


def test_gives_up_after_deaths_without_progress(program, tmp_path):
    with pytest.raises(UserError, match=r"ended 3 times without progress, last with status 7; fix .* --hang_min"):
        run(program("sys.exit(7)"), tmp_path, processes=1)()
    assert starts(tmp_path) == 3


def test_the_pause_before_a_restart_is_bounded(tmp_path, monkeypatch):
    """2.0**1024 is no float."""
    monkeypatch.setattr(supervisor, "LONGEST_PAUSE", 0.0)
    patience = Patience(restarts=1100, hang_seconds=60.0, grace_seconds=60.0)
    with pytest.raises(UserError, match="ended 1,101 times without progress"):
        supervisor._repeat(lambda: 7, tmp_path / "progress", patience, [], lambda _: None)


def test_progress_resets_the_count_of_restarts(program, tmp_path):
    status, _ = run(program("progress(); sys.exit(7 if start < 6 else 0)"), tmp_path, processes=1, restarts=1)()
    assert (status, starts(tmp_path)) == (0, 7)


def test_progress_up_to_the_same_failure_does_not_count(program, tmp_path):
    """Each start returns to the checkpoint of line 2, and fails after line 4."""
    command = program("(folder / 'progress').write_text('x\\n' * 2); progress(); progress(); sys.exit(7 * (start < 9))")
    with pytest.raises(UserError, match="ended 3 times without progress, last with status 7"):
        run(command, tmp_path, processes=1)()
    assert starts(tmp_path) == 4


def test_a_hang_restarts_all(program, tmp_path):
    status, said = run(program("progress(); time.sleep(0 if start else 60)"), tmp_path, hang_seconds=1.0)()
    assert (status, starts(tmp_path)) == (0, 2)
    assert said[0] == "no progress for 1 s; if matches take longer, raise --hang_minutes"


def test_a_run_that_progresses_for_longer_than_the_patience_does_not_hang(program, tmp_path):
    command = program("sys.exit(2) if start else [(progress(), time.sleep(0.6)) for _ in range(5)]")
    assert run(command, tmp_path, hang_seconds=2.0, processes=1)() == (0, [])


@pytest.mark.parametrize("status", [2, 75])
def test_final_statuses_do_not_restart(program, tmp_path, status):
    assert run(program(f"sys.exit({status})"), tmp_path)() == (status, [])
    assert starts(tmp_path) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_during_the_pause_starts_nothing(program, tmp_path, monkeypatch, number):
    """The scheduler that sends SIGTERM starts the run again."""
    command = program("sys.exit(7)")
    monkeypatch.setattr(supervisor, "LONGEST_PAUSE", 60.0)
    patience = Patience(restarts=2, hang_seconds=60.0, grace_seconds=60.0)

    def say(line: str) -> None:
        if line.startswith("restarting"):
            signal.raise_signal(number)

    with pytest.raises(KeyboardInterrupt) if number == signal.SIGINT else contextlib.nullcontext():
        assert supervise(command, 1, 0, tmp_path / "progress", patience, say) == REQUEUE
    assert starts(tmp_path) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lets_all_processes_save(program, tmp_path, number):
    command = program("""
        import signal
        def save(*_):
            (folder / f"saved_{rank}").touch()
            sys.exit(75)
        signal.signal(signal.SIGTERM, save)
        (folder / f"ready_{rank}").touch()
        time.sleep(60)
    """)
    assert stop_when_ready(command, tmp_path, number, grace_seconds=60) == (75, "")
    assert len(list(tmp_path.glob("saved_*"))) == 2


@pytest.mark.parametrize(("ending", "status"), [(75, 130), (0, 0), (-15, "KeyboardInterrupt")])
def test_ctrl_c_ends_with_the_status_of_an_interrupt(program, tmp_path, ending, status):
    """Processes that end with 75 have said what is saved; those that SIGTERM ends have not."""
    command = program(f"""
        import signal
        if {ending} >= 0:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit({ending}))
        (folder / f"ready_{{rank}}").touch()
        time.sleep(60)
    """)
    ended, said = stop_when_ready(command, tmp_path, signal.SIGINT, grace_seconds=60)
    first = "stopping: the processes save (at most 60 s); Ctrl-C again kills them\n"
    assert said.startswith(first)
    expected = (1, "KeyboardInterrupt\n") if status == "KeyboardInterrupt" else (status, "")
    assert (ended, said.removeprefix(first)) == expected


def test_a_second_ctrl_c_kills_the_processes(program, tmp_path):
    command = program("""
        import signal
        def ask_again(*_):
            if rank:
                os.kill(os.getppid(), signal.SIGINT)
        signal.signal(signal.SIGTERM, ask_again)
        (folder / f"ready_{rank}").touch()
        while True:
            time.sleep(60)
    """)
    status, said = stop_when_ready(command, tmp_path, signal.SIGINT, grace_seconds=600)
    assert status == 1
    assert said.splitlines()[1:] == ["killed what still ran after the second Ctrl-C", "KeyboardInterrupt"]


def test_processes_save_and_end_after_the_death_of_their_supervisor(program, tmp_path):
    command = program("""
        import signal
        from alphagat.runtime import supervisor
        def save(*_):
            (folder / f"saved_{rank}").touch()
            sys.exit(75)
        signal.signal(signal.SIGTERM, save)
        supervisor.end_with_supervisor()
        (folder / f"ready_{rank}").touch()
        time.sleep(60)
    """)
    # It reads their output to the end.
    assert stop_when_ready(command, tmp_path, signal.SIGKILL, grace_seconds=60) == (-signal.SIGKILL, "")
    assert len(list(tmp_path.glob("saved_*"))) == 2


def test_a_request_for_a_memory_profile_does_not_end_the_supervisor(program, tmp_path):
    command = program("""
        import signal
        os.kill(os.getppid(), signal.SIGUSR1)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
        (folder / f"ready_{rank}").touch()
        time.sleep(60)
    """)
    assert stop_when_ready(command, tmp_path, signal.SIGTERM, grace_seconds=60) == (75, "")


def test_who_saves_for_longer_than_the_grace_is_killed(program, tmp_path):
    command = program("""
        import signal
        signal.signal(signal.SIGTERM, lambda *_: None if rank else sys.exit(75))
        (folder / f"ready_{rank}").touch()
        while True:
            time.sleep(60)
    """)
    assert stop_when_ready(command, tmp_path, signal.SIGTERM, grace_seconds=1) == (
        75,
        "killed what still ran 1 s after the signal; for more time, raise --grace_seconds\n",
    )


def stop_when_ready(command: list[str], folder: Path, number: int, *, grace_seconds: float) -> tuple[int, str]:
    """Sends a signal to a supervisor of two processes once both are ready; returns its status and what it said."""
    patience = f"Patience(restarts=0, hang_seconds=60, grace_seconds={grace_seconds})"
    code = (
        "import pathlib; from alphagat.runtime.supervisor import *\n"
        f"try: sys.exit(supervise({command!r}, 2, 0, pathlib.Path('none'), {patience}, print))\n"
        "except KeyboardInterrupt: sys.exit(print('KeyboardInterrupt') or 1)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as process:
        while len(list(folder.glob("ready_*"))) < 2:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        said, _ = process.communicate(timeout=30)
    return process.returncode, said
