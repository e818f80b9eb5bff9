"""The right of one run, in one or several processes, to write into a folder."""

from pathlib import Path

import jax

from alphagat.errors import UserError
from alphagat.runs.folder import is_run
from alphagat.runs.lock import FolderLock
from alphagat.runtime import sharding


class FolderClaim:
    """The lock of a run folder, held by the first process for all processes of the run; a context manager."""

    def __init__(self, folder: Path):
        """Does not take the lock; `take` does."""
        self._folder, self._lock = folder, FolderLock(folder)
        self.is_taken = False

    def take(self, *, is_new: bool) -> None:
        """Takes the folder unless it is taken; all processes call it. With `is_new`, creates the folder.

        Raises:
          UserError: another run has the folder, or `is_new` and a run has started in it meanwhile.
        """
        if self.is_taken:
            return
        sharding.agree(lambda: self._take_lock(is_new))
        self.is_taken = True

    def _take_lock(self, is_new: bool) -> None:
        if jax.process_index() > 0:
            return
        self._lock.take()
        if is_new and is_run(self._folder):
            self._lock.release()
            raise UserError(f"--workdir {self._folder}: another run has started there; repeat the command to resume it")

    def __enter__(self) -> "FolderClaim":
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()
