"""Memory: the limit of a device, the compiler's plan, and the free memory of the machine."""

import math
from pathlib import Path
from typing import Any

import jax
from jax import stages
from jax.sharding import Mesh

from alphagat.runtime.control_groups import ROOT, folders_of, read

UNLIMITED = 2**60  # bytes; version 1 of control groups writes a number above this for "no limit"


def memory_limit(memory_gb: float) -> float:
    """Returns the bytes that a device may use: `memory_gb`, or the driver's limit if that is 0; infinite if unknown."""
    return memory_gb * 1e9 or (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit") or math.inf


def device_memory(memory_gb: float = 0.0) -> float:
    """Returns the bytes that a device may still use: `memory_limit`, or an equal share of the free memory of the
    machine if the devices are CPUs; infinite if unknown.
    """
    limit = memory_limit(memory_gb)
    if math.isfinite(limit) or jax.default_backend() != "cpu":
        return limit
    return available_memory() / jax.local_device_count()


def memory_needed(program: stages.Compiled) -> float:
    """Returns the bytes of arguments, results and intermediates on one device; 0 if unknown."""
    plan = program.memory_analysis()
    if plan is None:
        return 0.0
    held = plan.argument_size_in_bytes + plan.output_size_in_bytes - plan.alias_size_in_bytes
    return float(held + plan.temp_size_in_bytes + plan.generated_code_size_in_bytes)


def memory_held(mesh: Mesh, arrays: Any) -> int:
    """Returns the bytes that a tree of arrays occupies on each device of a mesh."""
    here = set(mesh.devices.flat)
    on_mesh = (leaf for leaf in jax.tree.leaves(arrays) if leaf.sharding.device_set & here)
    return sum(math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize for leaf in on_mesh)


def available_memory(root: Path = ROOT) -> float:
    """Returns the free bytes of the machine or of the control group of this process, whichever are fewer; infinite if
    unknown.

    Memory that the system uses as a cache counts as free.

    Args:
      root: the folder that contains `proc` and `sys`.
    """
    rows = dict(line.split(":", 1) for line in read(root / "proc/meminfo").splitlines() if ":" in line)
    words = rows.get("MemAvailable", "").split()
    free = [float(words[0]) * 1024] if words else []
    for group in folders_of("memory", root):
        limit, used = _number(group, "memory.max", "memory.limit_in_bytes"), _number(group, *_USED)
        if limit is not None and used is not None and limit < UNLIMITED:
            free.append(max(limit - used + _cached(group), 0.0))
    return min(free, default=math.inf)


_USED = "memory.current", "memory.usage_in_bytes"


def _number(group: Path, *names: str) -> float | None:
    """Returns the number in the first of the files that has one."""
    texts = [read(group / name).strip() for name in names]
    return next((float(text) for text in texts if text.isdecimal()), None)


def _cached(group: Path) -> float:
    rows = dict(line.split(" ", 1) for line in read(group / "memory.stat").splitlines() if " " in line)
    return float(rows.get("total_inactive_file") or rows.get("inactive_file") or 0)
