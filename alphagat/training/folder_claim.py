"""The right of one run, in one or several processes, to write into a folder."""

import time
import zlib
from pathlib import Path

import jax
import numpy as np
from jax.experimental import multihost_utils

from alphagat.errors import UserError
from alphagat.runs.checkpoint_writer import restore_replaced
from alphagat.runs.folder import is_run
from alphagat.runs.lock import FolderLock
from alphagat.runtime import sharding

SHARED_SECONDS = 90.0  # an NFS client may miss a new file for a minute
POLL_SECONDS = 0.2


class FolderClaim:
    """The lock of a run folder, held by the first process for all processes of the run; a context manager."""

    def __init__(self, folder: Path):
        """Does not take the lock; `take` does."""
        self._folder, self._lock = folder, FolderLock(folder)

    def take(self, *, is_new: bool) -> None:
        """Takes the folder unless it is taken, or not `is_new` and without a run; all processes call it together. With
        `is_new`, creates the folder.

        Raises:
          UserError: another run has the folder, `is_new` and a run has started in it meanwhile, or a process has
            another folder of that name.
        """
        sharding.agree(lambda: self._take_lock(is_new))
        if jax.process_count() > 1:
            written = int(multihost_utils.broadcast_one_to_all(np.uint32(self._stamp())))
            sharding.agree(lambda: self._check_shared(written))

    def _take_lock(self, is_new: bool) -> None:
        if jax.process_index() > 0 or self._lock.is_held or not (is_new or is_run(self._folder)):
            return
        self._lock.take()
        if not is_new:
            restore_replaced(self._folder)
        elif is_run(self._folder):
            self._lock.release()
            raise UserError(f"--workdir {self._folder}: another run has started there; repeat the command to resume it")

    def _stamp(self) -> int:
        """Returns a hash of the file of the lock, which differs between any two runs; 0 without a file."""
        return zlib.crc32(self._lock.read_holder())

    def _check_shared(self, written: int) -> None:
        """Checks that this process finds the file that the first one has written. Raises UserError."""
        deadline = time.monotonic() + SHARED_SECONDS
        while written and self._stamp() != written:
            if time.monotonic() > deadline:
                raise UserError(
                    f"--workdir {self._folder}: process {jax.process_index()} finds another folder there than "
                    "process 0; name one on a disk that all machines share"
                )
            time.sleep(POLL_SECONDS)

    def __enter__(self) -> "FolderClaim":
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()
