"""The lock of a run folder: one run at a time writes into it."""

import fcntl
import json
import os
import socket
import time
from pathlib import Path

from alphagat import bounded_json
from alphagat.errors import UserError, disk_failure

LOCK_FILE = "lock"


class FolderLock:
    """The lock of one folder; a context manager that releases it.

    The system releases the lock when the process ends, however it ends. It works on shared disks that support `flock`,
    such as NFS. While it is held, a file in the folder names the holder.
    """

    def __init__(self, folder: Path):
        """Does not take the lock; `take` does."""
        self._folder, self._file = folder, folder / LOCK_FILE
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        return self._descriptor is not None

    def take(self) -> None:
        """Takes the lock, and creates the folder if it does not exist.

        Raises:
          UserError: another run holds the lock, or the folder cannot be written.
        """
        while not self.is_held:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if self._is_current(descriptor):
                        self._descriptor = descriptor
                        self._name_holder()
                finally:
                    if not self.is_held:
                        os.close(descriptor)
            except BlockingIOError as error:
                raise UserError(
                    f"--workdir {self._folder} is in use by {self._describe_holder()}; wait for it, stop it, or name "
                    "another folder"
                ) from error
            except OSError as error:
                raise unwritable(self._folder, error) from error

    def release(self) -> None:
        """Removes the file and releases the lock, if it is held. Keeps the file of a run that replaced the folder."""
        if self._descriptor is not None:
            if self._is_current(self._descriptor):
                self._file.unlink(missing_ok=True)  # first: the next holder must find no file, or its own
            os.close(self._descriptor)
            self._descriptor = None

    def read_holder(self) -> bytes:
        """Returns what the file of the lock says about its holder, in any process; empty without a file."""
        try:
            return self._file.read_bytes()
        except OSError:
            return b""

    def __enter__(self) -> "FolderLock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _is_current(self, descriptor: int) -> bool:
        """Returns whether the file is still in the folder; it may have been removed or replaced."""
        try:
            return os.path.samestat(os.fstat(descriptor), self._file.stat())
        except FileNotFoundError:
            return False

    def _name_holder(self) -> None:
        assert self._descriptor is not None
        holder = {"host": socket.gethostname(), "pid": os.getpid(), "started": time.strftime("%Y-%m-%d %H:%M:%S")}
        os.truncate(self._descriptor, 0)
        os.write(self._descriptor, json.dumps(holder).encode())
        os.fsync(self._descriptor)  # other machines read it while this one keeps the file open

    def _describe_holder(self) -> str:
        try:
            holder = bounded_json.read(self._file)
            return f"process {holder['pid']} on host {holder['host']} since {holder['started']}"
        except (OSError, ValueError, TypeError, KeyError):
            return "another process"


def unwritable(folder: Path, error: OSError) -> UserError:
    """Returns the error of a run folder that cannot be written; the run can continue there once the disk is
    repaired.
    """
    failure = disk_failure(error)
    reason = f"{failure}, or" if failure else f"{error.strerror};"
    return UserError(f"--workdir {folder} cannot be written: {reason} name another folder")
