"""Diagnoses this machine for a run: devices and their links, versions, and likely problems."""

import functools
import importlib.util
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from alphagat.config import Config
from alphagat.runs.folder import describe_environment
from alphagat.runtime import sharding
from alphagat.runtime.distributed import detect
from alphagat.runtime.memory import memory_needed
from alphagat.runtime.xla import CACHE_VARIABLE
from alphagat.training.iterations import make_iterations
from alphagat.training.memory import check_memory
from alphagat.training.pretraining.dataset import read_recorded
from alphagat.training.setup import make_configured_mesh, make_run
from alphagat.training.state import init_state
from alphagat.wording import sized

REPEATS = 10
LOW_DISK = 5e9  # bytes


def devices() -> Iterator[tuple[str, str]]:
    """Yields the name and description of each device of this process."""
    for device in jax.local_devices():
        statistics = device.memory_stats() or {}
        limit, used = statistics.get("bytes_limit"), statistics.get("bytes_in_use", 0)
        memory = f"{sized(used)} of {sized(limit)} in use" if limit else "memory of the machine"
        yield f"{device.platform}:{device.id}", f"{device.device_kind}, {memory}"


def links() -> list[str]:
    """Returns the driver's table of links between GPUs; empty if there is none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        result = subprocess.run([program, "topo", "-m"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return result.stdout.splitlines() if result.returncode == 0 else []


def measure_all_reduce(mesh: Mesh, megabytes: float) -> tuple[float, float]:
    """Measures a mean of `megabytes` of float32 over the `data` axis.

    Returns:
      The median seconds, and bytes per second per device: each of n devices sends 2 (n - 1) / n of the array.
    """
    count, size = mesh.shape[sharding.DATA], max(int(megabytes * 1e6 / 4), 1)
    mean = functools.partial(jax.lax.pmean, axis_name=sharding.DATA)
    program = jax.jit(sharding.over_data(mean, mesh, sharding.SHARDED, sharding.SHARDED))
    array = jax.jit(lambda: jnp.ones((count, size)), out_shardings=sharding.sharded(mesh))()
    jax.block_until_ready(program(array))
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        jax.block_until_ready(program(array))
        seconds.append(time.perf_counter() - start)
    median = float(np.median(seconds))
    return median, 2 * (count - 1) / count * size * 4 / median


def warnings() -> Iterator[str]:
    """Yields likely errors and performance problems, each with its fix."""
    backend, environment = jax.default_backend(), os.environ
    has_gpu = any(Path("/proc/driver/nvidia/gpus").glob("*"))
    if has_gpu and backend != "gpu":
        yield "this machine has an NVIDIA GPU that JAX does not use: pip install 'alphagat[cuda12]' (or cuda13)"
    if environment.get("XLA_PYTHON_CLIENT_PREALLOCATE", "").lower() == "false" and backend == "gpu":
        yield "XLA_PYTHON_CLIENT_PREALLOCATE=false makes memory fragment; leave it out for training"
    if backend == "cpu" and (os.cpu_count() or 1) < 2:
        yield "there is one CPU core; a run takes days where a GPU takes hours"
    method = detect(environment)
    if method is None and "KUBERNETES_SERVICE_HOST" in environment and not importlib.util.find_spec("kubernetes"):
        yield (
            "KUBERNETES_SERVICE_HOST is set, but the package kubernetes is missing, so processes do not find each "
            "other: pip install kubernetes, or pass --nodes, --node_rank and --coordinator"
        )
    cache = environment.get(CACHE_VARIABLE)
    if cache and not _is_writable(Path(cache)):
        yield f"the compile cache {cache} cannot be written, so every start compiles again; set {CACHE_VARIABLE}"
    free = shutil.disk_usage(".").free
    if free < LOW_DISK:
        yield f"{sized(free)} are free on the disk of this folder; checkpoints may not fit"


def examine(config: Config) -> Iterator[str]:
    """Compiles the run of a config here and yields its memory use. Raises UserError if it could not start."""
    run = make_run(config, make_configured_mesh(config))
    check_memory(run)
    said: list[str] = []
    start = time.perf_counter()
    recorded = read_recorded(run, None) if run.learns_from_games else None
    iterations = make_iterations(run, init_state(run), said.append, recorded)
    yield from said
    seconds = time.perf_counter() - start
    for name, by_board in iterations.programs.items():
        for setup, program in zip(run.boards, by_board, strict=True):
            yield f"{setup.game.name}: {name} needs {sized(memory_needed(program))} on each of its devices"
    yield f"compiling took {seconds:.0f} s"


def versions() -> Iterator[tuple[str, str]]:
    """Yields the names and versions of Python, the platform, and the packages that a run depends on."""
    environment = describe_environment()
    yield "python", environment["python"]
    yield "platform", environment["platform"]
    yield from environment["packages"].items()


def _is_writable(folder: Path) -> bool:
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    return os.access(nearest, os.W_OK)
