"""The limits of the control groups of this process, of both versions, as containers and schedulers set them."""

import math
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")


def folders_of(kind: str, root: Path = ROOT) -> Iterator[Path]:
    """Yields the folders of the groups that may limit this process in a resource, such as `memory`.

    Args:
      root: the folder that contains `proc` and `sys`.
    """
    for line in read(root / "proc/self/cgroup").splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds and kind not in kinds.split(","):
            continue
        top = root / "sys/fs/cgroup" / (kind if kinds else "")
        group = top / path.lstrip("/")
        yield from (each for each in (group, *group.parents) if each == top or top in each.parents)


def cpu_quota(root: Path = ROOT) -> float:
    """Returns the processor time per time that this process may use, in cores; infinite without a limit."""
    cores = math.inf
    for group in folders_of("cpu", root):
        words = read(group / "cpu.max").split() or [
            read(group / name).strip() for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        ]
        if len(words) == 2 and all(word.isdecimal() for word in words):  # without a limit, the first is max or -1
            cores = min(cores, int(words[0]) / int(words[1]))
    return cores


def read(file: Path) -> str:
    """Returns the text of a file; empty if it cannot be read."""
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
