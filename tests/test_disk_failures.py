"""A full or failing disk is recognised, and ends a command with one line.

`tests/training/test_loop.py` resumes such runs.
"""

import errno
import io
import os
from pathlib import Path

import pytest
from tensorboardX import record_writer

from alphagat.cli import commands
from alphagat.errors import DiskError, disk_failure
from alphagat.runs.metrics import MetricsWriter


class FullDisk(io.BytesIO):
    """A file whose data never reaches the disk."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_tensorboard_does_not_wait_for_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(record_writer, "open_file", lambda path: FullDisk())
    with pytest.raises(OSError, match="No space left on device"), MetricsWriter(tmp_path) as writer:
        writer.write(1, {f"train/{number}": 0.0 for number in range(100)})


def wrapped(error: Exception) -> Exception:
    """Returns an error as a library raises it: in a group, after another error, from the given one."""
    cause = RuntimeError("the write failed")
    cause.__context__ = ExceptionGroup("tasks", [KeyError("x"), error])
    outer = ValueError("cannot save")
    outer.__cause__ = cause
    return outer


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (OSError(errno.ENOSPC, "full"), "no space left on device; free some"),
        (OSError(errno.EROFS, "x"), "read-only file system; make it writable"),
        (OSError(errno.EIO, "x"), "input/output error; check the disk"),
        (OSError(errno.EFBIG, "x"), "file too large; raise the limit of file sizes (ulimit -f)"),
        (
            ValueError("RESOURCE_EXHAUSTED: [OS error 28: No space left on device]"),
            "no space left on device; free some",
        ),
        (OSError(errno.ENOENT, "no such file"), None),
        (ValueError("x"), None),
    ],
    ids=str,
)
def test_the_cause_is_found(error: Exception, failure: str | None):
    assert disk_failure(error) == failure
    assert disk_failure(wrapped(error)) == failure


def test_every_command_ends_with_one_line(capsys: pytest.CaptureFixture):
    def fail(error: Exception) -> int:
        def command(argv):
            raise error

        return commands.run(command, [])

    assert fail(DiskError("runs/x: the disk is full")) == 1
    assert capsys.readouterr().err == "error: runs/x: the disk is full\n"
    assert fail(OSError(errno.ENOSPC, "No space left on device", "games.sgf")) == 1
    text = "error: games.sgf: no space left on device; free some and run the command again\n"
    assert capsys.readouterr().err == text
    with pytest.raises(FileNotFoundError):
        fail(FileNotFoundError(errno.ENOENT, "no such file"))
