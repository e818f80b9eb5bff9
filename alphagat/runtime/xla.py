"""What the compiler is told before JAX is loaded: flags by name, and where compiled programs are kept."""

import hashlib
import os
import platform
from pathlib import Path

from alphagat.errors import UserError

# Name: flags, each of a version of XLA that JAX 0.10 and later come with.
FLAGS = {
    "default": (),
    # On a GPU some sums are otherwise added up in any order: the price of a resume that is exact there.
    "deterministic": ("--xla_gpu_deterministic_ops=true",),
    # Gradients travel between the GPUs while the rest of the backward pass is computed.
    "overlap": ("--xla_gpu_enable_latency_hiding_scheduler=true",),
    # Programs as they were traced, for looking at what is slow or wrong; far from fast.
    "debug": ("--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"),
}
CACHE_VARIABLE = "JAX_COMPILATION_CACHE_DIR"


def use_flags(name: str) -> None:
    """Adds the flags called `name` to XLA_FLAGS. Raises UserError where there is no such name."""
    if name not in FLAGS:
        raise UserError(f"--xla {name}: choose one of {', '.join(FLAGS)}")
    os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *FLAGS[name]]).strip()


def use_cache() -> None:
    """Lets JAX keep compiled programs, unless JAX_COMPILATION_CACHE_DIR or JAX_ENABLE_COMPILATION_CACHE says where or
    whether.

    Each kind of processor has a folder of its own: programs of one may not run on another.
    """
    processor = hashlib.sha256(_describe_processor().encode()).hexdigest()[:8]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    os.environ.setdefault(CACHE_VARIABLE, str(base / "alphagat" / f"{platform.machine()}-{processor}"))


def _describe_processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
