"""Writes the checkpoints of a run: its whole state, by Orbax in the background."""

import itertools
import pathlib
import shutil
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

from alphagat.errors import UserError
from alphagat.runs.folder import CHECKPOINT_FOLDER
from alphagat.runs.manifest import write_manifest
from alphagat.runs.saved_checkpoints import ITEMS, PARAMS, RUN, checkpoint_folder, hide_late_work, identity_in
from alphagat.runtime import sharding

DAMAGED_FOLDER = "damaged"
_REPLACED = ".replaced"  # suffix of a step that is being replaced
_UNFINISHED = ".orbax-checkpoint-tmp"  # suffix of a step that is being written


class CheckpointWriter:
    """Writes steps into the folder `checkpoints/` of a run, each with a manifest (`runs.manifest`)."""

    def __init__(self, workdir: pathlib.Path, *, keep: int = 3, keep_every: int = 0):
        """Creates the folder if necessary. Keeps the latest `keep` steps and every multiple of `keep_every`."""
        self.directory = checkpoint_folder(workdir)
        self._workdir = workdir
        self._saving = 0
        options = ocp.CheckpointManagerOptions(
            max_to_keep=keep,
            keep_period=keep_every or None,
            async_options=ocp.AsyncOptions(post_finalization_callback=self._seal),
        )
        self._manager = ocp.CheckpointManager(self.directory, options=options, item_names=ITEMS)

    def __enter__(self) -> "CheckpointWriter":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._manager.close()

    def check_folder(self) -> None:
        """Checks that the folder is still in its place, in the first process: Orbax would make a new one without a run.

        Raises:
          UserError: it was moved or removed.
        """
        if jax.process_index() == 0 and not self.directory.is_dir():
            raise UserError(
                f"{self.directory} was moved or removed during the run; move it back, and run the command again to "
                "continue from its last checkpoint"
            )

    def save(self, state: Any, step: int) -> None:
        """Starts to write `state`, which may be donated immediately afterwards.

        Raises:
          FloatingPointError: a parameter is not finite; nothing is written.
          UserError: as `check_folder`.
          RuntimeError: Orbax refused the step.
        """
        self.check_folder()
        if not _is_finite((state.train.params, state.train.average)):
            raise FloatingPointError(f"a parameter is not finite after iteration {step}; no checkpoint was written")
        self._manager.wait_until_finished()  # before the copy: two may not fit into memory
        copied = _copy(state)
        hide_late_work()
        self._saving = step
        items = {RUN: copied, PARAMS: copied.train.acting}
        args = {name: ocp.args.StandardSave(item) for name, item in items.items()}
        if not self._manager.save(step, args=ocp.args.Composite(**args)):
            raise RuntimeError(f"Orbax did not save step {step} into {self.directory}")

    def _seal(self) -> None:
        """Writes the manifest. Orbax calls it in the background, after the files are written and before they are
        renamed.
        """
        write_manifest(self.directory / f"{self._saving}{_UNFINISHED}", ITEMS, self._saving, identity_in(self._workdir))

    def replace(self, state: Any, step: int) -> None:
        """Replaces the existing `step` with `state`; the old files remain until the new ones are complete, and return
        if that fails.

        All processes call it together.
        """
        before, is_first = self.directory / f"{step}{_REPLACED}", jax.process_index() == 0
        if is_first:
            shutil.rmtree(before, ignore_errors=True)
            (self.directory / str(step)).rename(before)
        try:
            sharding.wait_for_all("replacing a checkpoint")
            self._manager.reload()
            self.save(state, step)
            self.wait()
        finally:
            if is_first:
                restore_replaced(self._workdir)

    def wait(self) -> None:
        """Waits until all started writes are on disk."""
        self._manager.wait_until_finished()


def restore_replaced(workdir: pathlib.Path) -> None:
    """Completes or undoes each `CheckpointWriter.replace`. Call it while nothing else writes."""
    for before in (workdir / CHECKPOINT_FOLDER).glob(f"*{_REPLACED}"):
        step = before.with_suffix("")
        if step.exists():
            shutil.rmtree(before)
        else:
            before.rename(step)


def set_aside(workdir: pathlib.Path, step: int) -> pathlib.Path:
    """Moves a damaged checkpoint into `damaged/`, which no run reads, and returns its new path. A
    `CheckpointWriter` that is already open does not notice.
    """
    directory = checkpoint_folder(workdir)
    folder = directory / DAMAGED_FOLDER
    folder.mkdir(exist_ok=True)
    names = (f"{step}{suffix}" for suffix in itertools.chain([""], (f".{n}" for n in itertools.count(1))))
    place = next(folder / name for name in names if not (folder / name).exists())
    (directory / str(step)).rename(place)
    return place


def _copy(state: Any) -> Any:
    """Returns a copy: the next iteration donates the buffers of the state while a background thread still writes them.

    The copy is on the host, because Orbax takes several times as long to write arrays shard by shard. If this process
    does not address all of the state, the copy stays on the devices.
    """
    if jax.process_count() == 1:
        return jax.tree.map(np.array, jax.device_get(state))  # `device_get` may return the buffer itself
    return _copy_on_devices(state)


@jax.jit
def _copy_on_devices(state: Any) -> Any:
    return jax.tree.map(jnp.copy, state)


@jax.jit
def _is_finite(tree: Any) -> jax.Array:
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(tree)]).all()
