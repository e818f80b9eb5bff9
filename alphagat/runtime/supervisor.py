"""Keeps the processes of a run alive on one machine: all start together, and all start again when one dies or hangs."""

import contextlib
import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from alphagat.commands import REQUEUE, USER_ERROR
from alphagat.errors import UserError

POLL_SECONDS = 0.2
GRACE_SECONDS = 60  # from SIGTERM to SIGKILL: a run saves itself in that time
LONGEST_PAUSE = 60.0  # seconds before a restart
HELPLESS = (0, USER_ERROR, REQUEUE)  # statuses after which the same would happen again, or nothing is left to do


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """When to give up, and when to start again.

    Attributes:
      restarts: without any progress between.
      hang_seconds: without progress, before processes that live count as hung; their first program is compiled in it.
    """

    restarts: int
    hang_seconds: float


def supervise(
    command: Sequence[str],
    num_processes: int,
    num_gpus: int,
    progress: Path,
    limits: Limits,
    say: Callable[[str], None],
) -> int:
    """Runs `command` in so many processes until they end, and returns the status that they end with.

    Each process gets `--nodes`, `--node_rank` and `--coordinator`, and where there are GPUs one of its own.

    Args:
      progress: a file that grows while all is well.

    Raises:
      UserError: processes died or hung too often.
    """
    restarts = 0
    with _terminations() as is_terminated:
        while True:
            before = _stamp(progress)
            processes = _start(command, num_processes, num_gpus)
            status = _watch(processes, progress, limits.hang_seconds, is_terminated, say)
            if status in HELPLESS or is_terminated():
                return status
            restarts = 0 if _stamp(progress) != before else restarts + 1
            if restarts > limits.restarts:
                raise UserError(f"the processes ended {restarts} times without progress, last with status {status}")
            pause = min(2.0**restarts, LONGEST_PAUSE)
            say(f"all start again from the last checkpoint in {pause:.0f} s")
            time.sleep(pause)


def count_gpus() -> int:
    """Returns how many NVIDIA GPUs the driver shows, or those that CUDA_VISIBLE_DEVICES leaves of them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([each for each in visible.split(",") if each.strip() not in ("", "-1")])
    return len(list(Path("/proc/driver/nvidia/gpus").glob("*")))


@contextlib.contextmanager
def _terminations():
    """Gives a function that tells whether SIGTERM or Ctrl-C has come."""
    came: list[int] = []
    before = {
        each: signal.signal(each, lambda number, _: came.append(number)) for each in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield lambda: bool(came)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _start(command: Sequence[str], num_processes: int, num_gpus: int) -> list[subprocess.Popen]:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(num_gpus)))).split(",")
    processes = []
    for rank in range(num_processes):
        environment = dict(os.environ)
        if num_gpus:
            environment["CUDA_VISIBLE_DEVICES"] = visible[rank]
        where = ["--nodes", str(num_processes), "--node_rank", str(rank), "--coordinator", f"127.0.0.1:{port}"]
        # A group of their own, so that Ctrl-C reaches them once, by way of this process.
        words = [sys.executable, "-m", *command, *where]
        processes.append(subprocess.Popen(words, env=environment, process_group=0))
    return processes


def _watch(
    processes: Sequence[subprocess.Popen],
    progress: Path,
    hang_seconds: float,
    is_terminated: Callable[[], bool],
    say: Callable[[str], None],
) -> int:
    """Waits until all have ended, and ends the others when one dies, all hang, or this process is told to end."""
    seen, since = _stamp(progress), time.monotonic()
    while not is_terminated():
        statuses = [process.poll() for process in processes]
        failed = [status for status in statuses if status not in (None, 0, REQUEUE)]
        if failed:
            say(f"process {statuses.index(failed[0])} ended with status {failed[0]}")
            _end(processes, 0)  # the others wait for it in vain, and have nothing to save
            return failed[0]
        if None not in statuses:
            break
        if _stamp(progress) != seen:
            seen, since = _stamp(progress), time.monotonic()
        if time.monotonic() - since > hang_seconds:
            say(f"no progress for {hang_seconds:.0f} s")
            _end(processes, 0)
            return -signal.SIGKILL
        time.sleep(POLL_SECONDS)
    _end(processes, GRACE_SECONDS)
    return next((p.returncode for p in processes if p.returncode), 0)


def _end(processes: Sequence[subprocess.Popen], grace: float) -> None:
    """Asks them to end, and kills those that have not after `grace` seconds."""
    deadline = time.monotonic() + grace
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM if grace else signal.SIGKILL)
    for process in processes:
        try:
            process.wait(max(deadline - time.monotonic(), 0.0) if grace else None)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _stamp(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
