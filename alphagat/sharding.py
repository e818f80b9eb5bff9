"""Devices: how many, their mesh, and where the arrays of a run lie on it."""

import contextlib

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from alphagat.errors import UserError

DATA = "data"
DEFAULT_CPU_DEVICES = 8  # measured on two cores: search and updates run faster on eight CPU devices than on one

REPLICATED = PartitionSpec()
SHARDED = PartitionSpec(DATA)  # the leading axis, one slice per device


def configure_cpu_devices(num_devices: int) -> None:
    """Asks for that many CPU devices (0: the default), which matters only where JAX finds no accelerator.

    JAX reads this when it first touches a device. Where that has happened already, as in a notebook, the devices stay
    as they are, and `make_mesh` says so if they are too few.
    """
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", num_devices or DEFAULT_CPU_DEVICES)


def make_mesh(num_devices: int) -> Mesh:
    """Returns a mesh with one axis, `data`, over the first `num_devices` devices (0: all).

    Raises:
      UserError: there are fewer devices.
    """
    devices = jax.devices()
    if num_devices > len(devices):
        raise UserError(
            f"config.mesh.data={num_devices}, but this process has {len(devices)} {devices[0].platform} device(s): "
            f"set it to at most {len(devices)}, or to 0 for all"
        )
    num_devices = num_devices or len(devices)
    return jax.make_mesh((num_devices,), (DATA,), axis_types=(AxisType.Auto,), devices=devices[:num_devices])


def replicated(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, REPLICATED)


def sharded(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, SHARDED)


def fetch(array: jax.Array) -> np.ndarray:
    """Brings a sharded array to the host, on every process."""
    if array.is_fully_addressable:
        return np.asarray(array)
    return np.asarray(multihost_utils.process_allgather(array, tiled=True))
