"""Runs the processes of a run on one machine, and restarts all of them when one dies or hangs."""

import contextlib
import dataclasses
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from alphagat.errors import INTERRUPTED, REQUEUE, USER_ERROR, UserError
from alphagat.runtime import preemption
from alphagat.wording import counted

POLL_SECONDS = 0.2
LONGEST_PAUSE = 60.0  # seconds before a restart; pauses double up to it
LIFELINE = "ALPHAGAT_LIFELINE"  # the variable that names a pipe, which closes when the supervisor ends
FINAL = (0, USER_ERROR, REQUEUE)  # no restart: the run is done, would fail again, or must be requeued


@dataclasses.dataclass(frozen=True, kw_only=True)
class Patience:
    """Sets when to restart, and when to give up.

    Attributes:
      restarts: the most restarts in a row without progress beyond the furthest so far.
      hang_seconds: seconds without progress after which live processes count as hung; includes compilation.
      grace_seconds: from SIGTERM to SIGKILL; time for the run to save its state.
    """

    restarts: int
    hang_seconds: float
    grace_seconds: float


def supervise(
    command: Sequence[str],
    num_processes: int,
    num_gpus: int,
    progress: Path,
    patience: Patience,
    say: Callable[[str], None],
) -> int:
    """Runs `command` in `num_processes` processes until they end, and returns their exit status.

    Each process gets `--nodes`, `--node_rank` and `--coordinator`, and its own GPU if there are GPUs. SIGTERM, SIGHUP
    and the first Ctrl-C let the processes save; the second Ctrl-C kills them.

    Args:
      progress: a file that gets a line whenever the run makes progress. A restart may remove lines, back to the last
        checkpoint.

    Raises:
      UserError: the processes died or hung too often.
      KeyboardInterrupt: Ctrl-C came first, and the processes neither finished nor reported a mistake nor saved. If they
        saved, they have said so, and the status of an interrupt is returned.
    """
    with _terminations() as received, _lifeline() as lifeline:

        def run_all() -> int:
            with _reserved_port() as port:
                processes = _start(command, num_processes, num_gpus, port, lifeline)
                return _watch(processes, progress, patience, received, say)

        status = _repeat(run_all, progress, patience, received, say)
    if received[:1] != [signal.SIGINT] or status in (0, USER_ERROR):
        return status
    if status == REQUEUE:
        return INTERRUPTED
    raise KeyboardInterrupt


def _repeat(
    run_all: Callable[[], int],
    progress: Path,
    patience: Patience,
    received: Sequence[int],
    say: Callable[[str], None],
) -> int:
    """Calls `run_all` until its status is final or a signal arrives. Raises UserError if it fails too often."""
    restarts, furthest = 0, _num_lines(progress)
    while True:
        status = run_all()
        if status in FINAL or received:
            return status
        reached = _num_lines(progress)
        restarts, furthest = 0 if reached > furthest else restarts + 1, max(furthest, reached)
        if restarts > patience.restarts:
            raise UserError(
                f"the processes ended {counted(restarts, 'time')} without progress, last with status {status}; fix "
                "the error above, or raise --restarts, or --hang_minutes if they only took longer"
            )
        pause = min(2.0 ** min(restarts, 10), LONGEST_PAUSE)  # 2.0**1024 is no float
        say(f"restarting all processes from the last checkpoint in {pause:.0f} s")
        until = time.monotonic() + pause
        while time.monotonic() < until:
            if received:
                return status if received[0] == signal.SIGINT else REQUEUE
            time.sleep(POLL_SECONDS)


def count_gpus() -> int:
    """Returns the number of NVIDIA GPUs, limited by CUDA_VISIBLE_DEVICES."""
    return len(_visible_gpus())


def _visible_gpus() -> list[str]:
    """Returns the names of the GPUs, as CUDA_VISIBLE_DEVICES writes them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for each in visible.split(",") if (name := each.strip()) not in ("", "-1")]
    return [str(number) for number, _ in enumerate(Path("/proc/driver/nvidia/gpus").glob("*"))]


@contextlib.contextmanager
def _terminations() -> Iterator[list[int]]:
    """Yields the numbers of SIGTERM, SIGHUP and SIGINT that arrive, except for those that are ignored.

    Ignores SIGUSR1, by which each process, but not this one, writes a memory profile.
    """
    received: list[int] = []
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        with preemption.handling(lambda number, _: received.append(number)):
            yield received
    finally:
        signal.signal(signal.SIGUSR1, before)


@contextlib.contextmanager
def _lifeline() -> Iterator[int]:
    """Yields the end of a pipe for the processes; it closes even if this process is killed."""
    theirs, ours = os.pipe()
    try:
        yield theirs
    finally:
        os.close(ours)
        os.close(theirs)


def end_with_supervisor() -> None:
    """Sends this process SIGTERM once the supervisor that started it has ended; does nothing without a supervisor."""
    if LIFELINE not in os.environ:
        return
    lifeline = int(os.environ.pop(LIFELINE))

    def wait() -> None:
        os.read(lifeline, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


@contextlib.contextmanager
def _reserved_port() -> Iterator[int]:
    """Yields a port that the system gives to no other program inside the context, and on which rank 0 may listen.

    The socket does not listen, and allows reuse, as the one of rank 0 does.
    """
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(("", 0))
        yield reserved.getsockname()[1]


def _start(
    command: Sequence[str], num_processes: int, num_gpus: int, port: int, lifeline: int
) -> list[subprocess.Popen]:
    visible = _visible_gpus()
    processes = []
    for rank in range(num_processes):
        environment = os.environ | {LIFELINE: str(lifeline)}
        if num_gpus:
            environment["CUDA_VISIBLE_DEVICES"] = visible[rank]
        where = ["--nodes", str(num_processes), "--node_rank", str(rank), "--coordinator", f"127.0.0.1:{port}"]
        # Without the current folder among the modules (-P), where a config may be called random.py.
        words = [sys.executable, "-P", "-m", *command, *where]
        # A separate process group, so that Ctrl-C reaches them only through this process.
        processes.append(subprocess.Popen(words, env=environment, process_group=0, pass_fds=[lifeline]))
    return processes


def _watch(
    processes: Sequence[subprocess.Popen],
    progress: Path,
    patience: Patience,
    received: Sequence[int],
    say: Callable[[str], None],
) -> int:
    """Waits for all processes. Ends them all when one dies, all hang, or this process has received a signal."""
    seen, since = _stamp(progress), time.monotonic()
    while not received:
        statuses = [process.poll() for process in processes]
        failed = [status for status in statuses if status not in (None, 0, REQUEUE)]
        if failed:
            if failed[0] != USER_ERROR:  # which the process has explained
                say(f"process {statuses.index(failed[0])} ended with status {failed[0]}")
            _kill(processes)  # the others are blocked on it and have nothing to save
            return failed[0]
        if None not in statuses:
            break
        if _stamp(progress) != seen:
            seen, since = _stamp(progress), time.monotonic()
        if time.monotonic() - since > patience.hang_seconds:
            say(f"no progress for {patience.hang_seconds:.0f} s; if matches take longer, raise --hang_minutes")
            _kill(processes)
            return -signal.SIGKILL
        time.sleep(POLL_SECONDS)
    if received[:1] == [signal.SIGINT]:
        say(f"stopping: the processes save (at most {patience.grace_seconds:.0f} s); Ctrl-C again kills them")
    if killed := _terminate(processes, patience.grace_seconds, received):
        say(f"killed what still ran {killed}")
    return next((p.returncode for p in processes if p.returncode), 0)


def _terminate(processes: Sequence[subprocess.Popen], seconds: float, received: Sequence[int]) -> str:
    """Terminates the processes, and kills those that do not end within `seconds`, or before a second Ctrl-C.

    Returns when it killed a process; empty if it killed none.
    """
    deadline = time.monotonic() + seconds
    for process in processes:
        process.terminate()
    while any(process.poll() is None for process in processes):
        if received.count(signal.SIGINT) > 1:
            _kill(processes)
            return "after the second Ctrl-C"
        if time.monotonic() > deadline:
            _kill(processes)
            return f"{seconds:.0f} s after the signal; for more time, raise --grace_seconds"
        time.sleep(POLL_SECONDS)
    return ""


def _kill(processes: Sequence[subprocess.Popen]) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()


def _stamp(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def _num_lines(file: Path) -> int:
    try:
        with file.open("rb") as stream:
            return sum(1 for _ in stream)
    except OSError:
        return 0
