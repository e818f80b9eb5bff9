"""Compiler settings, made before JAX is loaded: named sets of XLA flags, and the compilation cache."""

import contextlib
import hashlib
import os
import platform
import sys
from pathlib import Path
from typing import NamedTuple

from alphagat.errors import UserError


class FlagSet(NamedTuple):
    """Compiler flags, and what they do."""

    meaning: str
    flags: tuple[str, ...]


FLAGS = {  # for the XLA of JAX 0.10 and later
    "default": FlagSet("those of XLA", ()),
    "deterministic": FlagSet(
        "bit-identical sums on a GPU, as a bit-identical resume requires; slower",
        ("--xla_gpu_deterministic_ops=true",),
    ),
    "overlap": FlagSet(
        "all-reduce of gradients during the backward pass", ("--xla_gpu_enable_latency_hiding_scheduler=true",)
    ),
    "debug": FlagSet(
        "few optimizations; slow",
        ("--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"),
    ),
}
GPU_LOOPS = "--xla_gpu_enable_command_buffer=+WHILE"
CACHE_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
PLATFORMS_VARIABLE = "JAX_PLATFORMS"


def use_flags(name: str) -> None:
    """Adds the set of flags `name` to XLA_FLAGS. Raises UserError as `check_flags` does."""
    check_flags(name)
    _add_flags(*FLAGS[name].flags)


def check_flags(name: str) -> None:
    """Raises UserError if there is no set of flags `name`, or XLA_FLAGS names a file."""
    if name not in FLAGS:
        raise UserError(f"--xla {name}: choose one of {', '.join(FLAGS)}")
    if FLAGS[name].flags and _flags_are_in_a_file():
        raise UserError(
            f"--xla {name}: XLA_FLAGS={os.environ['XLA_FLAGS']} names a file; write its flags there instead"
        )


def keep_loops_on_gpu() -> None:
    """Adds `GPU_LOOPS` to XLA_FLAGS unless they set the same option or name a file.

    A GPU then runs whole loops, and does not wait for the host after each step. Self-play on an H200 is 1.15 times as
    fast.
    """
    if GPU_LOOPS.partition("=")[0] not in os.environ.get("XLA_FLAGS", "") and not _flags_are_in_a_file():
        _add_flags(GPU_LOOPS)


def use_32_bits() -> None:
    """Drops JAX_ENABLE_X64, which a user may have set for other programs: rules and networks have 32 bits."""
    os.environ.pop("JAX_ENABLE_X64", None)


def _flags_are_in_a_file() -> bool:
    """Returns whether XLA takes XLA_FLAGS for the name of a file of flags."""
    return os.environ.get("XLA_FLAGS", "").strip()[:1] not in ("", "-")


def _add_flags(*flags: str) -> None:
    os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *flags]).strip()


def missing_platform() -> str | None:
    """Returns a line about JAX_PLATFORMS if JAX has been imported and finds none of its platforms, else None."""
    jax, platforms = sys.modules.get("jax"), os.environ.get(PLATFORMS_VARIABLE)
    if jax is None or not platforms:
        return None
    try:
        jax.devices()
    except (RuntimeError, AssertionError):
        return (
            f"{PLATFORMS_VARIABLE}={platforms}: JAX finds no such devices here; install their plugin (for GPUs, the "
            f"extra cuda12 or cuda13), or unset {PLATFORMS_VARIABLE}"
        )
    return None


def use_cache() -> None:
    """Enables JAX's persistent compilation cache in `cache_folder`, unless JAX_COMPILATION_CACHE_DIR is set."""
    with contextlib.suppress(RuntimeError):  # HOME is not set, and the user has no home: without a cache
        os.environ.setdefault(CACHE_VARIABLE, str(cache_folder()))


def cache_folder() -> Path:
    """Returns the folder below `~/.cache/alphagat` for the programs of this machine.

    Each processor model has its own, since a program compiled for one may not run on another.

    Raises:
      RuntimeError: the user has no home folder.
    """
    processor = hashlib.sha256(_describe_processor().encode()).hexdigest()[:8]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "alphagat" / f"{platform.machine()}-{processor}"


def _describe_processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
