"""The free memory of the machine, or of the control group of the process."""

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from alphagat.runtime.memory import available_memory, memory_needed

GB = 1 << 30
MACHINE = {"proc/meminfo": f"MemTotal: {16 << 20} kB\nMemAvailable: {8 << 20} kB\n"}
SECOND = {"proc/self/cgroup": "0::/jobs/1\n", "sys/fs/cgroup/jobs/1/memory.max": "max\n"}
FIRST = {"proc/self/cgroup": "5:cpu,memory:/\n3:cpuset:/\n"}
LIMITED = {"sys/fs/cgroup/jobs/memory.max": f"{4 * GB}\n", "sys/fs/cgroup/jobs/memory.current": f"{3 * GB}\n"}
FULL = LIMITED | {"sys/fs/cgroup/jobs/memory.current": f"{4 * GB}\n"}
CACHED = {"sys/fs/cgroup/jobs/memory.stat": f"anon 5\ninactive_file {GB}\n"}
OLD = {
    "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{4 * GB}\n",
    "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{3 * GB}\n",
}
UNLIMITED = OLD | {"sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2**63 - 4096}\n"}


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, math.inf),
        (MACHINE, 8 * GB),
        (MACHINE | SECOND, 8 * GB),
        (MACHINE | SECOND | LIMITED, GB),
        (MACHINE | SECOND | LIMITED | CACHED, 2 * GB),
        (MACHINE | SECOND | FULL, 0),
        (MACHINE | FIRST | OLD, GB),
        (MACHINE | FIRST | UNLIMITED, 8 * GB),
    ],
    ids=["unknown", "machine", "no limit", "limited", "cached", "full", "version 1", "version 1, no limit"],
)
def test_free_memory(files: dict[str, str], free: float, tmp_path: Path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert available_memory(tmp_path) == free


def test_this_machine_has_free_memory():
    assert available_memory() > 0 or not Path("/proc/meminfo").exists()


def test_a_donated_argument_is_counted_once():
    array = jnp.zeros(1000)
    kept, donated = (
        memory_needed(jax.jit(lambda x: x + 1, donate_argnums=numbers).lower(array).compile()) for numbers in ((), 0)
    )
    assert kept - donated == array.nbytes
