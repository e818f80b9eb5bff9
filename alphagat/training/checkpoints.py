"""Checkpoints of the whole run state, written by Orbax while training goes on."""

import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
from jax.sharding import Mesh, SingleDeviceSharding

from alphagat.errors import UserError
from alphagat.training.setup import Setup, make_params
from alphagat.training.state import RunState, state_shapes, state_shardings

_RUN, _PARAMS = "run", "params"  # the items of a checkpoint; the parameters also stand alone, for evaluation


class Checkpoints:
    """The folder `checkpoints/` of a run. A step is the number of iterations done; it appears once it is complete."""

    def __init__(self, workdir: pathlib.Path, *, keep: int = 3, keep_every: int = 0, read_only: bool = False):
        """Opens the folder, creating it unless `read_only`; keeps the latest `keep` and every multiple of
        `keep_every`.
        """
        self.directory = (workdir / "checkpoints").absolute()
        options = ocp.CheckpointManagerOptions(
            max_to_keep=None if read_only else keep, keep_period=keep_every or None, create=not read_only
        )
        self._manager = ocp.CheckpointManager(self.directory, options=options, item_names=(_RUN, _PARAMS))
        self._copy = jax.jit(lambda state: jax.tree.map(jnp.copy, state))

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._manager.close()

    def steps(self) -> list[int]:
        """Returns the complete steps on disk, ascending."""
        self._manager.reload()  # what is on disk, and not what this process believes to have written
        return sorted(self._manager.all_steps())

    def save(self, state: RunState, step: int) -> None:
        """Starts to write `state`; it may be donated right afterwards."""
        # A copy, because the next iteration donates the state's buffers while a background thread still writes them.
        copied = self._copy(state)
        items = ocp.args.Composite(run=ocp.args.StandardSave(copied), params=ocp.args.StandardSave(copied.train.params))
        self._manager.save(step, args=items)

    def wait(self) -> None:
        """Returns once everything started is on disk."""
        self._manager.wait_until_finished()

    def restore(self, setup: Setup, mesh: Mesh, step: int) -> RunState:
        """Reads the run state of `step` onto the devices of `mesh`, of which there may be more or fewer than at the
        save.

        Raises:
          UserError: it cannot be read, or is another run's.
        """
        shapes = state_shapes(setup)
        target = jax.tree.map(
            lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
            shapes,
            state_shardings(mesh, shapes),
        )
        return self._read(step, lambda: self._restore_item(step, _RUN, target))

    def restore_params(self, setup: Setup, step: int) -> Any:
        """Reads only the parameters of `step`, onto the first device.

        Raises:
          UserError: they cannot be read, or are another network's.
        """
        shapes = jax.eval_shape(lambda: make_params(setup.game, setup.network, jax.random.key(0)))
        sharding = SingleDeviceSharding(jax.devices()[0])
        target = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), shapes)
        return self._read(step, lambda: self._restore_item(step, _PARAMS, target))

    def _restore_item(self, step: int, name: str, target: Any) -> Any:
        args = ocp.args.Composite(**{name: ocp.args.StandardRestore(target)})
        return self._manager.restore(step, args=args)[name]

    def _read(self, step: int, read: Callable[[], Any]) -> Any:
        # Orbax raises many things for a damaged file, a bare Exception among them.
        try:
            return read()
        except Exception as error:
            reason = str(error).strip().split("\n")[0][:200]
            raise UserError(
                f"checkpoint {self.directory / str(step)} cannot be read ({type(error).__name__}: {reason}): "
                "nothing was changed; move that folder away to go on from the one before it, or take another --workdir"
            ) from error
