"""The processes of a run take its folder together, and notice if they have different ones."""

from pathlib import Path

import pytest

from alphagat.errors import UserError
from alphagat.runs.checkpoint_writer import restore_replaced
from alphagat.runs.folder import CONFIG_FILE
from alphagat.runs.lock import LOCK_FILE, FolderLock
from alphagat.training import folder_claim
from alphagat.training.folder_claim import FolderClaim
from tests.processes import as_processes


def make_run(folder: Path) -> None:
    folder.mkdir()
    (folder / CONFIG_FILE).touch()


def take_all(monkeypatch: pytest.MonkeyPatch, folders: list[Path], *, is_new: bool) -> list:
    """Returns the results of taking a folder in each process, and keeps the locks."""
    works = [lambda folder=folder: FolderClaim(folder).take(is_new=is_new) for folder in folders]
    return as_processes(monkeypatch, works)


def test_only_the_first_process_takes_a_lock(monkeypatch, tmp_path):
    claims = [FolderClaim(tmp_path / "run") for _ in range(2)]
    for _ in range(2):
        assert as_processes(monkeypatch, [lambda c=claim: c.take(is_new=True) for claim in claims]) == [None, None]
    with pytest.raises(UserError, match="is in use by"):
        FolderLock(tmp_path / "run").take()
    claims[1].__exit__()
    assert (tmp_path / "run" / LOCK_FILE).exists()
    claims[0].__exit__()
    assert not (tmp_path / "run" / LOCK_FILE).exists()


def test_the_first_process_alone_decides_whether_there_is_a_run(monkeypatch, tmp_path):
    """The other process would wait for it, or take part in nothing."""
    monkeypatch.setattr(folder_claim, "SHARED_SECONDS", 0.0)
    make_run(tmp_path / "1")
    assert take_all(monkeypatch, [tmp_path / "0", tmp_path / "1"], is_new=False) == [None, None]
    assert not (tmp_path / "0").exists()


@pytest.mark.parametrize("is_new", [False, True])
def test_a_folder_that_is_not_shared_is_refused(monkeypatch, tmp_path, is_new: bool):
    monkeypatch.setattr(folder_claim, "SHARED_SECONDS", 0.0)
    folders = [tmp_path / "0", tmp_path / "1"]
    if not is_new:
        for folder in folders:
            make_run(folder)
    said = f"--workdir {folders[1]}: process 1 finds another folder there than process 0; name one on a disk that"
    results = take_all(monkeypatch, folders, is_new=is_new)
    assert results == [(f"{said} all machines share", False), (f"{said} all machines share", True)]


def test_a_file_that_appears_late_is_found(monkeypatch, tmp_path):
    """As on NFS."""
    reads, read = [], FolderLock.read_holder

    def read_late(lock: FolderLock) -> bytes:
        reads.append(lock)
        return read(lock) if lock.is_held or len(reads) > 4 else b""

    monkeypatch.setattr(folder_claim, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(FolderLock, "read_holder", read_late)
    assert take_all(monkeypatch, [tmp_path / "run"] * 2, is_new=True) == [None, None]


def test_a_replacement_of_a_checkpoint_is_undone_under_the_lock(monkeypatch, tmp_path):
    restored = []

    def restore(folder: Path) -> None:
        restored.append((folder / LOCK_FILE).exists())
        restore_replaced(folder)

    monkeypatch.setattr(folder_claim, "restore_replaced", restore)
    make_run(tmp_path / "run")
    with FolderClaim(tmp_path / "run") as claim:
        claim.take(is_new=False)
        claim.take(is_new=True)
    assert restored == [True]
