"""Checkpoints of the whole run state, written by Orbax while training goes on."""

import functools
import inspect
import logging
import pathlib
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import Mesh, Sharding, SingleDeviceSharding

from alphagat.errors import UserError
from alphagat.games.base import Game
from alphagat.networks import Network
from alphagat.sharding import replicated
from alphagat.training.setup import Setup, make_params
from alphagat.training.state import RunState, state_shapes, state_shardings

CHECKPOINT_FOLDER = "checkpoints"
_RUN, _PARAMS = "run", "params"  # the items of a checkpoint; the parameters also stand alone, for evaluation


class Checkpoints:
    """The folder `checkpoints/` of a run. A step is the number of iterations done; it appears once it is complete."""

    def __init__(self, workdir: pathlib.Path, *, keep: int = 3, keep_every: int = 0, read_only: bool = False):
        """Opens the folder, creating it unless `read_only`; keeps the latest `keep` and every multiple of
        `keep_every`.
        """
        self.directory = (workdir / CHECKPOINT_FOLDER).absolute()
        options = ocp.CheckpointManagerOptions(
            max_to_keep=None if read_only else keep, keep_period=keep_every or None, create=not read_only
        )
        self._manager = ocp.CheckpointManager(self.directory, options=options, item_names=(_RUN, _PARAMS))

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
        items = {name: ocp.args.StandardSave(sealed) for name, sealed in _copy_and_seal(state).items()}
        self._manager.save(step, args=ocp.args.Composite(**items))

    def wait(self) -> None:
        """Returns once everything started is on disk."""
        self._manager.wait_until_finished()

    def restore(self, setups: Sequence[Setup], mesh: Mesh, step: int) -> RunState:
        """Reads the run state of `step` onto the devices of `mesh`, of which there may be more or fewer than at the
        save.

        Raises:
          UserError: it cannot be read, or is another run's.
        """
        shapes = state_shapes(setups)
        target = jax.tree.map(
            lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding),
            shapes,
            state_shardings(mesh, shapes),
        )
        return self._read(step, lambda: self._restore_item(step, _RUN, target, replicated(mesh)))

    def restore_params(self, game: Game, network: Network, step: int) -> Any:
        """Reads only the parameters of `step`, for `network` on `game`, onto the first device.

        Raises:
          UserError: they cannot be read, or are another network's.
        """
        shapes = jax.eval_shape(lambda: make_params(game, network, jax.random.key(0)))
        sharding = SingleDeviceSharding(jax.devices()[0])
        target = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), shapes)
        return self._read(step, lambda: self._restore_item(step, _PARAMS, target, sharding))

    def _restore_item(self, step: int, name: str, target: Any, sharding: Sharding) -> Any:
        shape = jax.eval_shape(checksums, target).shape
        sums = jax.ShapeDtypeStruct(shape, jnp.uint32, sharding=sharding)
        args = ocp.args.StandardRestore(_Sealed(target, sums)._asdict())
        sealed = _Sealed(**self._manager.restore(step, args=ocp.args.Composite(**{name: args}))[name])
        if not np.array_equal(sealed.checksums, checksums(sealed.content)):
            raise ValueError("a file of it has changed since it was written")
        return sealed.content

    def _read(self, step: int, read: Callable[[], Any]) -> Any:
        _hide_late_reads()
        # Orbax raises many things for a damaged file, a bare Exception among them.
        try:
            return read()
        except Exception as error:
            reason = str(error).strip().split("\n")[0][:200]
            raise UserError(
                f"checkpoint {self.directory / str(step)} cannot be read ({type(error).__name__}: {reason}): "
                "nothing was changed; move that folder away to go on from the one before it, or take another --workdir"
            ) from error


class _Sealed(NamedTuple):
    """What an item holds: checksums beside the content, since Orbax reads many a changed file without a complaint."""

    content: Any
    checksums: Any  # [K] uint32


@jax.jit
def _copy_and_seal(state: RunState) -> dict[str, Any]:
    copied = jax.tree.map(jnp.copy, state)
    contents = {_RUN: copied, _PARAMS: copied.train.acting}
    return {name: _Sealed(content, checksums(content))._asdict() for name, content in contents.items()}


@jax.jit
def checksums(content: Any) -> jax.Array:
    """Returns `[1 + G]` uint32 of a run state with G groups, which stay on their devices, or `[1]` of anything else."""
    if not isinstance(content, RunState):
        return _checksum(content)[None]
    grouped = [(board.games, board.replay, board.groups) for board in content.boards]
    replicated_part = content.replace(boards=tuple(board.iteration for board in content.boards))
    return jnp.concatenate([_checksum(replicated_part)[None], jax.vmap(_checksum)(grouped)])


def _checksum(tree: Any) -> jax.Array:
    """Returns the sum modulo 2**32 of all bytes, each times an odd number of its own: a change of one byte changes it.

    A sum of integers depends neither on its order nor on the number of devices. One sum for all leaves, because
    hundreds of them take seconds to compile.
    """

    def read_bytes(leaf: jax.Array) -> jax.Array:
        is_bool = leaf.dtype == jnp.bool_
        return (leaf.astype(jnp.uint8) if is_bool else jax.lax.bitcast_convert_type(leaf, jnp.uint8)).ravel()

    data = jnp.concatenate([read_bytes(leaf) for leaf in jax.tree.leaves(tree)])
    return jnp.sum(data.astype(jnp.uint32) * (2 * jnp.arange(data.size, dtype=jnp.uint32) + 1), dtype=jnp.uint32)


def _hide_late_reads() -> None:
    """Keeps quiet about reads of a damaged checkpoint that end, in their own threads, after the first has failed."""
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    _filter_late_reads()


@functools.cache
def _filter_late_reads() -> None:
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        is_late = inspect.iscoroutine(unraisable.object) or str(unraisable.exc_value) == "Event loop is closed"
        if not is_late:
            before(unraisable)

    sys.unraisablehook = hook
    logging.getLogger("asyncio").addFilter(lambda record: "exception was never retrieved" not in record.getMessage())
