"""The quota of processor time of both versions of control groups."""

import math
from pathlib import Path

import pytest

from alphagat.runtime.control_groups import cpu_quota

SECOND = {"proc/self/cgroup": "0::/jobs/1\n", "sys/fs/cgroup/jobs/1/cpu.max": "max 100000\n"}
FIRST = {"proc/self/cgroup": "5:memory:/\n3:cpu,cpuacct:/job\n"}
OLD = {"sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "150000\n", "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n"}


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, math.inf),
        (SECOND, math.inf),
        (SECOND | {"sys/fs/cgroup/jobs/cpu.max": "200000 100000\n"}, 2),
        (SECOND | {"sys/fs/cgroup/cpu.max": "50000 100000\n", "sys/fs/cgroup/jobs/cpu.max": "300000 100000\n"}, 0.5),
        (FIRST | OLD, 1.5),
        (FIRST | OLD | {"sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "-1\n"}, math.inf),
    ],
    ids=["unknown", "no limit", "limited", "limited twice", "version 1", "version 1, no limit"],
)
def test_quota_of_processor_time(files: dict[str, str], cores: float, tmp_path: Path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert cpu_quota(tmp_path) == cores
