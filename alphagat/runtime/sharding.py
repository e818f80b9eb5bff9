"""Devices: how many, their mesh, and where the arrays of a run lie on it.

A mesh has three axes. Games, replay and batches are split over `data`, by `over_data`, whose functions say what
crosses it. The others have one device unless a network is split: along `model` XLA's partitioner follows the
parameters, and along `stage` lie the blocks, as `networks.pipeline` says.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from alphagat.errors import UserError
from alphagat.runtime import distributed

DATA, STAGE, MODEL = "data", "stage", "model"
DEFAULT_CPU_DEVICES = 8  # measured on two cores: search and updates run faster on eight CPU devices than on one

REPLICATED = PartitionSpec()
SHARDED = PartitionSpec(DATA)  # the leading axis, one slice per device


def configure_cpu_devices(num_devices: int) -> None:
    """Asks for that many CPU devices over all processes (0: the default), which matters only where JAX finds no
    accelerator.

    JAX reads this when it first touches a device. Where that has happened already, as in a notebook, the devices stay
    as they are, and `make_mesh` says so if they are too few.
    """
    with contextlib.suppress(RuntimeError):
        here = (num_devices or DEFAULT_CPU_DEVICES) // distributed.num_processes()
        jax.config.update("jax_num_cpu_devices", max(here, 1))


def make_mesh(data: int = 0, model: int = 1, stage: int = 1) -> Mesh:
    """Returns a mesh of `data` times `stage` times `model` devices, the first that there are (data=0: all).

    Raises:
      UserError: there are fewer devices, or `stage` times `model` does not divide all of them.
    """
    devices = jax.devices()
    there = f"{len(devices)} {devices[0].platform} device(s)"
    per_network, most = model * stage, len(devices) // (model * stage)
    split = " times ".join(f"config.mesh.{name}={n}" for name, n in (("stage", stage), ("model", model)) if n > 1)
    if not most:
        raise UserError(f"{split}, but there are {there}: set their product to at most {len(devices)}")
    if data > most:
        asked = f"config.mesh.data={data}" + (f" times {split}" if split else "")
        raise UserError(f"{asked}, but there are {there}: set config.mesh.data to at most {most}, or to 0 for all")
    if not data and len(devices) % per_network:
        raise UserError(
            f"{split} does not divide the {there}: set config.mesh.data to at most {most}, to leave some idle, or "
            f"{split.split('=')[0]} to a divisor"
        )
    data = data or most
    if jax.process_count() > 1 and data * per_network < len(devices):
        raise UserError(
            f"config.mesh.data={data} would leave devices of {jax.process_count()} processes idle: set it to "
            f"{most}, or to 0 for all"
        )
    shape = (data, stage, model)
    return jax.make_mesh(
        shape, (DATA, STAGE, MODEL), axis_types=(AxisType.Auto,) * 3, devices=devices[: data * per_network]
    )


def split_mesh(mesh: Mesh, num_actors: int) -> tuple[Mesh, Mesh]:
    """Returns the meshes of the devices that play, the first `num_actors`, and of those that learn; 0: all do both."""
    if not num_actors:
        return mesh, mesh
    parts = mesh.devices[:num_actors], mesh.devices[num_actors:]
    actors, learners = (Mesh(part, mesh.axis_names, axis_types=mesh.axis_types) for part in parts)
    return actors, learners


def over_data(function: Callable, mesh: Mesh, in_specs: Any, out_specs: Any) -> Callable:
    """Maps `function` over the slices along `data`; what crosses the axis is inside it, by name.

    `check_vma=False` because mctx's loops do not declare what varies over the mesh.
    """
    return jax.shard_map(
        function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names={DATA}, check_vma=False
    )


def replicated(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, REPLICATED)


def sharded(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, SHARDED)


def place(tree: Any, where: NamedSharding) -> Any:
    """Puts arrays, the same ones on every process, on the devices of a mesh. What lies on that mesh stays as it is."""

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
        return jax.device_put(np.asarray(leaf), where)  # from other devices JAX puts nothing on several processes

    return jax.tree.map(put, tree)


def fetch(array: jax.Array) -> np.ndarray:
    """Brings a sharded array to the host, on every process."""
    if array.is_fully_addressable:
        return np.asarray(array)
    return np.asarray(multihost_utils.process_allgather(array, tiled=True))
