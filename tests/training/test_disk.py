"""A run whose disk is full, or fails, ends with one line, and continues once there is space."""

import errno
import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tensorboardX import record_writer

from alphagat import commands
from alphagat.errors import DiskError, disk_failure
from alphagat.runs.checkpoints import Checkpoints
from alphagat.runs.metrics import MetricsWriter, read_metrics
from alphagat.training.loop import train
from tests.training.test_loop import assert_same_run
from tests.training.tiny import NUM_ITERATIONS, tiny_config

pytestmark = pytest.mark.usefixtures("programs_once")


def failing(function: Callable, step_of: Callable, step: int, number: int = errno.ENOSPC) -> Callable:
    """Returns a method that raises an `OSError` at that step, before it calls `function`."""

    def call(self, *arguments):
        if step_of(self, *arguments) == step:
            raise OSError(number, os.strerror(number))
        return function(self, *arguments)

    return call


def break_metrics(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MetricsWriter, "write", failing(MetricsWriter.write, lambda _, iteration, __: iteration, 6))


def break_checkpoints(patch: pytest.MonkeyPatch) -> None:
    """Fails in the thread of Orbax, which raises it at the next save."""
    patch.setattr(Checkpoints, "_seal", failing(Checkpoints._seal, lambda self: self._saving, 6))


@pytest.mark.parametrize("break_disk", [break_metrics, break_checkpoints])
def test_a_full_disk_loses_nothing(break_disk, tmp_path: Path):
    train(tiny_config(), tmp_path / "finished")
    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        break_disk(patch)
        with pytest.raises(DiskError) as error:
            train(tiny_config(), folder)
    text = "no space left on device; free some and run the command again to continue from iteration 5"
    assert str(error.value) == f"{folder}: {text}"
    train(tiny_config(), folder)
    assert_same_run(folder, tmp_path / "finished")
    assert len(read_metrics(folder)) == NUM_ITERATIONS


def test_a_full_disk_before_the_first_checkpoint_starts_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Checkpoints, "_seal", failing(Checkpoints._seal, lambda self: self._saving, 1, errno.EDQUOT))
    with pytest.raises(DiskError, match=r"isk quota exceeded; free some and run the command again to start again"):
        train(tiny_config(), tmp_path / "run")


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

        return commands.run(command, [], interrupted="")

    assert fail(DiskError("runs/x: the disk is full")) == 1
    assert capsys.readouterr().err == "error: runs/x: the disk is full\n"
    assert fail(OSError(errno.ENOSPC, "No space left on device", "games.sgf")) == 1
    text = "error: games.sgf: no space left on device; free some and run the command again\n"
    assert capsys.readouterr().err == text
    with pytest.raises(FileNotFoundError):
        fail(FileNotFoundError(errno.ENOENT, "no such file"))
