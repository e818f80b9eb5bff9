"""The device mesh, and the sharding of a run's arrays over it.

A mesh has three axes. Games, replay and batches are split over `data` by `over_data`; functions mapped by it name the
axis in their collectives. The other two axes have size 1 unless the network is split: over `model` by XLA's
partitioner, which follows the sharding of the parameters, and over `stage` by blocks (`networks.pipeline`).
"""

import contextlib
import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from alphagat.errors import JointError, UserError
from alphagat.runtime import distributed
from alphagat.runtime.control_groups import cpu_quota
from alphagat.wording import counted

T = TypeVar("T")

DATA, STAGE, MODEL = "data", "stage", "model"
MAX_MESSAGE_BYTES = 2_000  # of an error that processes send to each other
DEFAULT_CPU_DEVICES = 8  # searches are faster on eight CPU devices than on one, even on one core

REPLICATED = PartitionSpec()
SHARDED = PartitionSpec(DATA)  # the leading axis, one slice per device


def configure_cpu_devices(num_devices: int) -> None:
    """Sets the number of CPU devices over all processes (0: the default). Has no effect with an accelerator.

    JAX reads the setting when it first touches a device. After that, as in a notebook, the devices do not change, and
    `make_mesh` raises if there are too few.
    """
    with contextlib.suppress(RuntimeError):
        here = (num_devices or DEFAULT_CPU_DEVICES) // distributed.num_processes()
        jax.config.update("jax_num_cpu_devices", max(here, 1))


def one_device_per_core() -> int:
    """Returns the number of CPU devices that leaves each a core of this process: a power of two, up to the default.
    A quota of processor time, as of `docker run --cpus=2`, counts as that many cores.

    A power of two divides the usual numbers of groups.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = math.ceil(min(cores, cpu_quota()))
    return min(1 << (cores.bit_length() - 1), DEFAULT_CPU_DEVICES)


def host_device() -> Any:
    """Returns a CPU device of this process, or its first device if JAX has no CPU, as with JAX_PLATFORMS=cuda."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return jax.local_devices()[0]


def make_mesh(data: int = 0, model: int = 1, stage: int = 1) -> Mesh:
    """Returns a mesh of the first `data` times `stage` times `model` devices (data=0: all devices).

    Raises:
      UserError: there are too few devices, or data=0 and `stage` times `model` does not divide their number.
    """
    devices = jax.devices()
    there = counted(len(devices), f"{devices[0].platform} device")
    per_network, most = model * stage, len(devices) // (model * stage)
    split = " times ".join(f"config.mesh.{name}={n}" for name, n in (("stage", stage), ("model", model)) if n > 1)
    if not most:
        raise UserError(f"{split}, but JAX has {there}: reduce it to at most {len(devices)}")
    if data > most:
        asked = f"config.mesh.data={data}" + (f" times {split}" if split else "")
        fix = f"set config.mesh.data to at most {most}, or to 0 for all"
        if devices[0].platform == "cpu":
            fix += ", or train before any other use of JAX, which fixes the number of CPU devices"
        raise UserError(f"{asked}, but JAX has {there}: {fix}")
    if not data and len(devices) % per_network:
        raise UserError(
            f"{split} does not divide the {there}: set {split.split('=')[0]} to a divisor, or config.mesh.data to at "
            f"most {most} to leave some devices idle"
        )
    data = data or most
    if jax.process_count() > 1 and data * per_network < len(devices):
        raise UserError(
            f"config.mesh.data={data} would leave devices of {jax.process_count()} processes idle: set it to "
            f"{most}, or to 0 for all"
        )
    return _mesh_of(devices[: data * per_network], (data, stage, model))


def make_local_mesh() -> Mesh:
    """Returns a mesh of one device of this process."""
    return _mesh_of(jax.local_devices()[:1], (1, 1, 1))


def _mesh_of(devices: Sequence[Any], shape: tuple[int, int, int]) -> Mesh:
    return jax.make_mesh(shape, (DATA, STAGE, MODEL), axis_types=(AxisType.Auto,) * 3, devices=devices)


def split_mesh(mesh: Mesh, num_actors: int) -> tuple[Mesh, Mesh]:
    """Returns the meshes of actors, the first `num_actors` devices, and of learners; 0: all devices do both."""
    if not num_actors:
        return mesh, mesh
    parts = mesh.devices[:num_actors], mesh.devices[num_actors:]
    actors, learners = (Mesh(part, mesh.axis_names, axis_types=mesh.axis_types) for part in parts)
    return actors, learners


def over_data(function: Callable, mesh: Mesh, in_specs: Any, out_specs: Any) -> Callable:
    """Maps `function` over the slices along `data`. It may use collectives over the axis name `DATA`.

    `check_vma=False` because mctx's loops do not declare which values vary over the mesh.
    """
    return jax.shard_map(
        function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names={DATA}, check_vma=False
    )


def replicated(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, REPLICATED)


def sharded(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, SHARDED)


def place(tree: Any, where: NamedSharding) -> Any:
    """Puts arrays, equal on every process, on the devices of a mesh. Returns arrays already on it unchanged."""

    def put(leaf: Any) -> jax.Array:
        if (
            isinstance(leaf, jax.Array)
            and isinstance(leaf.sharding, NamedSharding)
            and leaf.sharding.mesh == where.mesh
        ):
            return leaf
        if where.is_fully_addressable:
            return jax.device_put(leaf, where)
        if isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(put(jax.random.key_data(leaf)))
        return jax.device_put(np.asarray(leaf), where)  # JAX copies across processes from host arrays only

    return jax.tree.map(put, tree)


def fetch(array: jax.Array) -> np.ndarray:
    """Copies a sharded array to the host, on every process."""
    if array.is_fully_addressable:
        return np.asarray(array)
    return np.asarray(multihost_utils.process_allgather(array, tiled=True))


def agree(work: Callable[[], T]) -> T:
    """Returns the result of `work`, which every process calls. If it raises UserError in one, it does in all.

    Any other error ends only its process. The work must have no collectives, which would wait for a failed process.

    Raises:
      UserError: that of `work`, in the only process.
      JointError: `work` raised UserError in at least one of several processes.
    """
    if jax.process_count() == 1:
        return work()
    results: list[T] = []
    text = b""
    try:
        results.append(work())
    except UserError as error:
        text = str(error).encode(errors="backslashreplace")[:MAX_MESSAGE_BYTES]
    message = np.frombuffer(text.ljust(MAX_MESSAGE_BYTES, b"\0"), np.uint8)
    messages = multihost_utils.process_allgather(np.append(message, np.uint8(not results)))
    has_failed = messages[:, -1] > 0
    if has_failed.any():
        first = int(has_failed.argmax())
        text = messages[first, :-1].tobytes().rstrip(b"\0").decode(errors="replace")
        raise JointError(text, is_reported_here=jax.process_index() == first)
    return results[0]


def check_equal(values: Mapping[str, Any], fix: str) -> None:
    """Checks that all processes, which call this with the same names, have the same values.

    Raises:
      JointError: they differ; the message names the first value that does, and ends with `fix`.
    """
    if jax.process_count() == 1:
        return
    digests = [hashlib.sha256(repr(value).encode(errors="backslashreplace")).digest() for value in values.values()]
    gathered = multihost_utils.process_allgather(np.stack([np.frombuffer(digest, np.uint8) for digest in digests]))
    differs = (gathered != gathered[0]).any(axis=(0, 2))  # [processes, values, 32] before
    if differs.any():
        name = list(values)[int(differs.argmax())]
        raise JointError(f"{name} differs between the processes; {fix}", is_reported_here=jax.process_index() == 0)


def largest(value: float) -> float:
    """Returns the largest of the values with which the processes call this, in single precision."""
    if jax.process_count() == 1:
        return value
    return float(multihost_utils.process_allgather(np.float32(value)).max())


def wait_for_all(where: str) -> None:
    """Waits until every process has called it with this name.

    On CPUs, the first collective of some devices fails if a process joins it 30 s after another. So the processes wait
    at the start, and here or in `agree` after work that takes them unequally long, such as compiling.
    """
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(where)
