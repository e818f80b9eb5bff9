"""One process at a time holds the lock of a folder, however the last holder ended."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from alphagat.errors import UserError
from alphagat.runs.lock import LOCK_FILE, FolderLock

ROOT = Path(__file__).parents[2]
HOLD = """
import sys, time
from pathlib import Path
from alphagat.runs.lock import FolderLock
FolderLock(Path(sys.argv[1])).take()
print("held", flush=True)
time.sleep(60)
"""


def test_a_held_lock_is_refused_and_names_the_holder(tmp_path):
    with FolderLock(tmp_path / "run") as lock:
        lock.take()
        other = FolderLock(tmp_path / "run")
        with pytest.raises(UserError, match=f"in use by process {os.getpid()} on host {socket.gethostname()} since 20"):
            other.take()
        assert not other.is_held
        other.release()
        assert (tmp_path / "run" / LOCK_FILE).exists()
    assert list((tmp_path / "run").iterdir()) == []
    other.take()
    assert other.is_held
    other.release()


def test_a_killed_process_loses_the_lock(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UserError, match=f"process {holder.pid} on host"):
            FolderLock(tmp_path).take()
        holder.send_signal(signal.SIGKILL)
    assert (tmp_path / LOCK_FILE).exists()
    with FolderLock(tmp_path) as lock:
        lock.take()
        assert json.loads((tmp_path / LOCK_FILE).read_text())["pid"] == os.getpid()


def test_a_longer_old_entry_is_overwritten_completely(tmp_path):
    (tmp_path / LOCK_FILE).write_bytes(b"x" * 500)
    with FolderLock(tmp_path) as lock:
        lock.take()
        assert json.loads((tmp_path / LOCK_FILE).read_text())["pid"] == os.getpid()


def test_a_file_that_the_last_holder_removed_is_not_locked(tmp_path, monkeypatch):
    """The holder releases between the opening of its file and the lock on it."""
    first = FolderLock(tmp_path)
    first.take()
    open_file, opened = os.open, []

    def open_then_release(*arguments):
        opened.append(open_file(*arguments))
        first.release()
        return opened[-1]

    monkeypatch.setattr(os, "open", open_then_release)
    with FolderLock(tmp_path) as lock:
        lock.take()
        assert len(opened) == 2
        assert os.path.samestat(os.fstat(opened[1]), (tmp_path / LOCK_FILE).stat())


def test_the_lock_of_a_later_run_in_a_replaced_folder_is_kept(tmp_path):
    first, second = FolderLock(tmp_path / "run"), FolderLock(tmp_path / "run")
    first.take()
    shutil.rmtree(tmp_path / "run")
    second.take()
    first.release()
    assert (tmp_path / "run" / LOCK_FILE).exists()
    second.release()
    assert list((tmp_path / "run").iterdir()) == []


@pytest.mark.parametrize("text", [b"", b"\xff", b"[]", b'{"pid": 1}', b"[" * 100_000])
def test_an_unreadable_holder_is_still_a_holder(tmp_path, text: bytes):
    with FolderLock(tmp_path) as lock:
        lock.take()
        (tmp_path / LOCK_FILE).write_bytes(text)
        with pytest.raises(UserError, match="in use by another process"):
            FolderLock(tmp_path).take()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("words")
    with pytest.raises(UserError, match="cannot be written: Not a directory"):
        FolderLock(tmp_path / "file" / "run").take()
