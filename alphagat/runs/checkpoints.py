"""Checkpoints of the whole run state, written by Orbax in the background."""

import functools
import inspect
import itertools
import logging
import pathlib
import re
import shutil
import sys
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import SingleDeviceSharding

from alphagat.errors import UserError
from alphagat.runs.folder import CHECKPOINT_FOLDER, identity_of, is_run, read_config
from alphagat.runs.manifest import find_damage, find_metadata_damage, write_manifest
from alphagat.runtime import sharding

DAMAGED_FOLDER = "damaged"
_ITEMS = _RUN, _PARAMS = "run", "params"  # the parameters are also saved on their own, for evaluation
_REPLACED = ".replaced"  # suffix of a step that is being replaced
_LATE = "Event loop is closed"
_MISFIT = re.compile(r"Requested shape: (\(.*?\)) is not compatible with the stored shape: (\(.*?\))")  # of Orbax
_UNFINISHED = ".orbax-checkpoint-tmp"  # suffix of a step that is being written


class Checkpoints:
    """The folder `checkpoints/` of a run. A step is a number of iterations done; it appears once it is complete.

    Each step has a manifest (`runs.manifest`). Reading a step that differs from its manifest raises.
    """

    def __init__(self, workdir: pathlib.Path, *, keep: int = 3, keep_every: int = 0, read_only: bool = False):
        """Opens the folder and creates it unless `read_only`. Keeps the latest `keep` steps and every multiple of
        `keep_every`.
        """
        self.directory = (workdir / CHECKPOINT_FOLDER).absolute()
        self._workdir = workdir
        self._saving = 0
        options = ocp.CheckpointManagerOptions(
            max_to_keep=keep,
            keep_period=keep_every or None,
            async_options=ocp.AsyncOptions(post_finalization_callback=self._seal),
        )
        # Only for writing: it reads files of all steps, so one damaged step would hide the intact ones.
        self._writer = None if read_only else ocp.CheckpointManager(self.directory, options=options, item_names=_ITEMS)

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._writer is not None:
            self._writer.close()

    @property
    def _manager(self) -> ocp.CheckpointManager:
        assert self._writer is not None, "the folder was opened with read_only"
        return self._writer

    def steps(self) -> list[int]:
        """Returns the complete steps on disk, ascending."""
        return list_steps(self._workdir)

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
        """
        self.check_folder()
        copied = _copy(state)
        if not _is_finite((state.train.params, state.train.average)):
            raise FloatingPointError(f"a parameter is not finite after iteration {step}; no checkpoint was written")
        self._manager.wait_until_finished()
        _hide_late_work()
        self._saving = step
        items = {_RUN: copied, _PARAMS: copied.train.acting}
        args = {name: ocp.args.StandardSave(item) for name, item in items.items()}
        if not self._manager.save(step, args=ocp.args.Composite(**args)):
            raise RuntimeError(f"Orbax did not save step {step} into {self.directory}")

    def _seal(self) -> None:
        """Writes the manifest. Orbax calls it in the background, after the files are written and before they are
        renamed.
        """
        write_manifest(self.directory / f"{self._saving}{_UNFINISHED}", _ITEMS, self._saving, self._identity())

    def _identity(self) -> dict[str, Any]:
        return identity_of(read_config(self._workdir)) if is_run(self._workdir) else {}

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

    def find_damage(self, step: int) -> str | None:
        """Describes how `step` differs from its manifest; None if it does not."""
        return find_damage(self.directory / str(step), _ITEMS, step, self._identity())

    def find_metadata_damage(self, step: int) -> str | None:
        """Describes the damage of the file that Orbax reads of all steps before it writes one; None if it is intact."""
        return find_metadata_damage(self.directory / str(step))

    def restore(self, shapes: Any, step: int, *, verify: bool = True) -> Any:
        """Reads the run state of `step` onto devices.

        Args:
          shapes: the expected pytree of `jax.ShapeDtypeStruct` with shardings. The number of devices may differ from
            the save.
          verify: whether to compare the files with their manifest first; False after `find_damage` returned None.

        Raises:
          UserError: the files have changed since the save, or belong to another run.
        """
        return self._read(step, _RUN, shapes, verify)

    def read(self, shapes: Any, step: int) -> Any:
        """Reads the whole run state of `step` onto the host of every process. Raises UserError as `restore` does."""
        target = jax.tree.map(lambda leaf: np.empty(leaf.shape, leaf.dtype), shapes)
        return self._read(step, _RUN, target, verify=True)

    def restore_params(self, shapes: Any, step: int) -> Any:
        """Reads only the parameters of `step`, onto the first device.

        Args:
          shapes: the expected pytree of `ShapeDtypeStruct`.

        Raises:
          UserError: the files are damaged, or belong to another network.
        """
        sharding = SingleDeviceSharding(jax.devices()[0])
        target = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), shapes)
        return self._read(step, _PARAMS, target, verify=True)

    def _read(self, step: int, item: str, target: Any, verify: bool) -> Any:
        folder = self.directory / str(step)
        if verify and (damage := find_damage(folder, [item], step, self._identity())):
            raise UserError(f"checkpoint {folder} is damaged: {damage}; choose another iteration")
        _hide_late_work()
        args = ocp.args.Composite(**{item: ocp.args.StandardRestore(target)})
        # Orbax raises many exception types for unreadable files, including bare Exception.
        try:
            with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as reader:
                return reader.restore(folder, args=args)[item]
        except Exception as error:
            if misfit := _MISFIT.search(str(error)):
                raise UserError(
                    f"checkpoint {folder} holds an array of shape {misfit[2]} where this network has {misfit[1]}; use "
                    "the version of AlphaGAT that wrote it, or train again"
                ) from error
            reason = str(error).strip().split("\n")[0][:200]
            raise UserError(
                f"checkpoint {folder} cannot be read ({type(error).__name__}: {reason}); move that folder away to "
                "resume from the previous checkpoint, or name another --workdir"
            ) from error


def list_steps(workdir: pathlib.Path) -> list[int]:
    """Returns the iterations of a run's complete checkpoints, ascending; empty if there are none.

    Orbax renames the folder of a step to its number once it is complete. A file or link with such a name is a damaged
    checkpoint.
    """
    directory = workdir / CHECKPOINT_FOLDER
    entries = directory.iterdir() if directory.is_dir() else ()
    return sorted(int(each.name) for each in entries if each.name.isdecimal())


def restore_replaced(workdir: pathlib.Path) -> None:
    """Completes or undoes each `Checkpoints.replace`. Call it while nothing else writes."""
    for before in (workdir / CHECKPOINT_FOLDER).glob(f"*{_REPLACED}"):
        step = before.with_suffix("")
        if step.exists():
            shutil.rmtree(before)
        else:
            before.rename(step)


def set_aside(workdir: pathlib.Path, step: int) -> pathlib.Path:
    """Moves a damaged checkpoint into `damaged/`, which no run reads, and returns its new path. A `Checkpoints`
    object that is already open does not notice.
    """
    directory = (workdir / CHECKPOINT_FOLDER).absolute()
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


def _hide_late_work() -> None:
    """Suppresses messages from threads that still read or write a checkpoint after the first file has failed."""
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    _filter_late_work()


@functools.cache
def _filter_late_work() -> None:
    unraisable_before, before = sys.unraisablehook, sys.excepthook

    def unraisable_hook(unraisable: Any) -> None:
        if not (inspect.iscoroutine(unraisable.object) or str(unraisable.exc_value) == _LATE):
            unraisable_before(unraisable)

    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if str(error) != _LATE:
            before(kind, error, trace)

    sys.unraisablehook, sys.excepthook = unraisable_hook, hook  # TensorStore's threads call the second
    logging.getLogger("asyncio").addFilter(lambda record: "exception was never retrieved" not in record.getMessage())
