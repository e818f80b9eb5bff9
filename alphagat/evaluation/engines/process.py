"""Line-based subprocesses: non-blocking reads and reliable termination."""

import collections
import contextlib
import functools
import os
import queue
import shlex
import shutil
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import IO

from alphagat.errors import UserError
from alphagat.evaluation.engines.base import EngineError, last_lines

GAME_FOLDERS = ("/usr/games", "/usr/local/games")  # Debian installs engines there; PATH often lacks them
NUM_KEPT_LINES = 20
# These bound memory; no answer has more lines, and no line is longer.
MAX_WAITING_LINES = 10_000
MAX_LINE_BYTES = 8192
START_SECONDS = 60.0  # for answers before the first position; some engines load a network
EXIT_SECONDS = 1.0  # time for a program to exit and for its output to be read


def split_command(command: str) -> list[str]:
    """Splits a shell command into words; the first becomes the absolute path of the program.

    Raises:
      UserError: the program does not exist, or quotes are unbalanced.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UserError(f"engine {command!r}: {error}; write it as in a shell") from error
    if not words:
        raise UserError("the engine's command is empty; name a program, such as gnugo --mode gtp")
    folders = os.pathsep.join((os.environ.get("PATH", os.defpath), *GAME_FOLDERS))
    program = shutil.which(words[0], path=folders)
    if program is None:
        raise UserError(
            f"engine {words[0]!r} is not installed: it is neither a program's path nor in PATH or {GAME_FOLDERS[0]}; "
            "install it, or give its path"
        )
    return [str(Path(program).absolute()), *words[1:]]


class EngineProcess:
    """One running program.

    It leads its own process group, so that its children end with it and Ctrl-C reaches only this process. Its stdin is
    a pipe: when this process dies, even by SIGKILL, the program reads end of file.
    """

    def __init__(self, words: list[str]):
        """Starts the program. Raises EngineError, "died", if the system cannot start it."""
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise EngineError("died", f"{words[0]} does not start: {error.strerror}") from error
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()  # None: end of file
        self._said: collections.deque[str] = collections.deque(maxlen=NUM_KEPT_LINES)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        # The threads hold no reference to this object; otherwise it would never be collected and its program never end.
        self._readers = (
            _read_in_background(self._process.stdout, self._said, functools.partial(_deliver, self._lines)),
            _read_in_background(self._process.stderr, self._said, lambda line: None),
        )
        self._end = weakref.finalize(self, _end, self._process, self._readers)

    def send(self, line: str) -> None:
        """Sends one line. Raises EngineError ("died") if the program has closed its stdin."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except OSError as error:
            raise self._death() from error

    def read_line(self, deadline: float) -> str:
        """Returns the next line of its stdout without the end of line; lines longer than `MAX_LINE_BYTES` are split.

        Args:
          deadline: by `time.monotonic()`.

        Raises:
          EngineError: "timed out" or "died".
        """
        seconds = deadline - time.monotonic()
        try:
            if seconds <= 0:  # even if a line is available, because a program might print without end
                raise queue.Empty
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise EngineError("timed out", f"no answer in time; its last output: {self.last_said()}") from None
        if line is None:
            self._lines.put(None)
            raise self._death()
        return line

    def last_said(self) -> str:
        """Returns the last lines of its stdout and stderr, joined into one line."""
        return last_lines(tuple(self._said))

    def close(self, goodbye: str | None = None) -> None:
        """Sends `goodbye`, and kills the program unless it exits within a second; idempotent."""
        if self._end.alive and goodbye is not None:
            with contextlib.suppress(EngineError):
                self.send(goodbye)
                _wait_for_exit(self._process)
        self._end()

    def _death(self) -> EngineError:
        if _wait_for_exit(self._process):
            _kill(self._process)
            for reader in self._readers:
                reader.join(EXIT_SECONDS)
        return EngineError("died", f"it {describe_exit(self._process.returncode)}; its last output: {self.last_said()}")


def describe_exit(status: int | None) -> str:
    """Describes an exit status: negative for a signal, None for a running process."""
    if status is None:
        return "closed its output"
    return f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"


def kill_group(process_id: int) -> None:
    """Kills the process group that `process_id` leads."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process_id, signal.SIGKILL)


def _deliver(lines: queue.SimpleQueue[str | None], line: str | None) -> None:
    if line is None or lines.qsize() < MAX_WAITING_LINES:
        lines.put(line)


def _read_in_background(
    stream: IO[bytes], said: collections.deque[str], deliver: Callable[[str | None], None]
) -> threading.Thread:
    """Appends the lines of a stream to `said` and delivers them; None at the end.

    Longer lines than `MAX_LINE_BYTES` become several.
    """

    def read() -> None:
        for raw in iter(functools.partial(stream.readline, MAX_LINE_BYTES), b""):
            line = raw.decode(errors="replace").rstrip("\r\n")
            said.append(line)
            deliver(line)
        deliver(None)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def _wait_for_exit(process: subprocess.Popen) -> bool:
    """Waits a second for the process to exit, and returns whether it did. It is not reaped, so it keeps its id."""
    deadline = time.monotonic() + EXIT_SECONDS
    while process.returncode is None:
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _kill(process: subprocess.Popen) -> None:
    """Kills the process and its children, also if it has exited, and reaps it."""
    if process.returncode is None:  # else its id may have been reused
        kill_group(process.pid)
        process.wait()


def _end(process: subprocess.Popen, readers: tuple[threading.Thread, ...]) -> None:
    """Kills the process and its children, and frees its pipes."""
    _kill(process)
    for reader, stream in zip(readers, (process.stdout, process.stderr)):
        reader.join(EXIT_SECONDS)
        if not reader.is_alive() and stream is not None:
            stream.close()
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
