"""Reads the checkpoints of a run."""

import functools
import inspect
import logging
import pathlib
import re
import sys
import warnings
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import SingleDeviceSharding

from alphagat.errors import UserError, first_line
from alphagat.runs.folder import CHECKPOINT_FOLDER, identity_of, is_run, read_config
from alphagat.runs.manifest import find_damage, find_metadata_damage

ITEMS = RUN, PARAMS = "run", "params"  # the parameters are also saved on their own, for evaluation
_LATE = "Event loop is closed"
_MISFIT = re.compile(r"Requested shape: (\(.*?\)) is not compatible with the stored shape: (\(.*?\))")  # of Orbax


class SavedCheckpoints:
    """The checkpoints in the folder of a run. A step is a number of iterations done; it appears once it is complete.

    Each step has a manifest (`runs.manifest`). Reading a step that differs from its manifest raises.
    """

    def __init__(self, workdir: pathlib.Path):
        self._workdir = workdir
        self.directory = checkpoint_folder(workdir)

    def find_damage(self, step: int) -> str | None:
        """Describes how `step` differs from its manifest; None if it does not."""
        return find_damage(self.directory / str(step), ITEMS, step, identity_in(self._workdir))

    def find_metadata_damage(self, step: int) -> str | None:
        """Describes the damage to the metadata of `step`, which Orbax reads before any save; None if it is intact."""
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
        return self._read(step, RUN, shapes, verify, ocp.options.MultiprocessingOptions())

    def read(self, shapes: Any, step: int) -> Any:
        """Reads the whole run state of `step` onto the host of this process. Raises UserError as `restore` does."""
        target = jax.tree.map(lambda leaf: np.empty(leaf.shape, leaf.dtype), shapes)
        return self._read(step, RUN, target, True, _here())

    def restore_params(self, shapes: Any, step: int) -> Any:
        """Reads only the parameters of `step`, onto the first device of this process.

        Args:
          shapes: the expected pytree of `ShapeDtypeStruct`.

        Raises:
          UserError: the files are damaged, or belong to another network.
        """
        sharding = SingleDeviceSharding(jax.local_devices()[0])
        target = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), shapes)
        return self._read(step, PARAMS, target, True, _here())

    def _read(self, step: int, item: str, target: Any, verify: bool, where: ocp.options.MultiprocessingOptions) -> Any:
        folder = self.directory / str(step)
        if verify and (damage := find_damage(folder, [item], step, identity_in(self._workdir))):
            raise UserError(f"checkpoint {folder} is damaged: {damage}; choose another iteration")
        hide_late_work()
        args = ocp.args.Composite(**{item: ocp.args.StandardRestore(target)})
        # Orbax raises many exception types for unreadable files, including bare Exception.
        try:
            with ocp.Checkpointer(ocp.CompositeCheckpointHandler(), multiprocessing_options=where) as reader:
                return reader.restore(folder, args=args)[item]
        except Exception as error:
            if misfit := _MISFIT.search(str(error)):
                raise UserError(
                    f"checkpoint {folder} holds an array of shape {misfit[2]} where this network has {misfit[1]}; use "
                    "the version of AlphaGAT that wrote it, or train again"
                ) from error
            raise UserError(
                f"checkpoint {folder} cannot be read ({type(error).__name__}: {first_line(error)}); move that folder "
                "away to resume from the previous checkpoint, or name another --workdir"
            ) from error


def _here() -> ocp.options.MultiprocessingOptions:
    """Returns the options with which this process reads alone: it does not wait for the others."""
    here = jax.process_index()
    return ocp.options.MultiprocessingOptions(primary_host=here, active_processes={here})


def checkpoint_folder(workdir: pathlib.Path) -> pathlib.Path:
    """Returns the absolute path of the checkpoints of a run."""
    return (workdir / CHECKPOINT_FOLDER).absolute()


def identity_in(workdir: pathlib.Path) -> dict[str, Any]:
    """Returns what identifies the run of a folder in manifests; empty if the folder has no config."""
    return identity_of(read_config(workdir)) if is_run(workdir) else {}


def list_steps(workdir: pathlib.Path) -> list[int]:
    """Returns the iterations of a run's complete checkpoints, ascending; empty if there are none.

    Orbax renames the folder of a step to its number once it is complete. A file or link with such a name is a damaged
    checkpoint.
    """
    directory = workdir / CHECKPOINT_FOLDER
    entries = directory.iterdir() if directory.is_dir() else ()
    return sorted(int(each.name) for each in entries if each.name.isdecimal())


def hide_late_work() -> None:
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
