"""The metrics of a run, as `metrics.jsonl` (one JSON object per iteration) and for TensorBoard."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboardX import SummaryWriter

from alphagat.runs.atomic_files import write_atomically

METRICS_FILE = "metrics.jsonl"
TENSORBOARD_FOLDER = "tensorboard"


class MetricsWriter:
    """Appends one line per iteration to both files; a context manager.

    On resume, pass the iteration that was restored: what a killed run wrote beyond it is dropped, so each iteration
    appears once.
    """

    def __init__(self, workdir: str | os.PathLike, *, restored_iteration: int = 0):
        folder = Path(workdir)
        self._file = folder / METRICS_FILE
        truncate_after(self._file, restored_iteration)
        self._stream = self._file.open("a")
        # TensorBoard hides what earlier processes wrote for purge_step and later. The suffix keeps the file of a start
        # apart from that of a start within the same second, which would be overwritten.
        self._summaries = SummaryWriter(
            str(folder / TENSORBOARD_FOLDER),
            purge_step=restored_iteration + 1,
            filename_suffix=f".{restored_iteration}.{os.getpid()}",
        )

    def write(self, iteration: int, metrics: Mapping[str, float]) -> None:
        """Writes the metrics of one iteration and flushes. A value that is not finite becomes null, and no point."""
        line = _finite(metrics)
        self._stream.write(_json(iteration, line))
        self._stream.flush()
        self._draw(iteration, line)

    def amend(self, iteration: int, metrics: Mapping[str, float]) -> None:
        """Adds metrics to the line of `iteration`, the last one; where it is missing, they become one."""
        lines = read_metrics(self._file.parent)
        before = lines.pop() if lines and lines[-1]["iteration"] == iteration else {}
        text = "".join(_json(line["iteration"], _finite(line)) for line in lines)
        self._stream.close()
        write_atomically(self._file, text + _json(iteration, _finite(before) | _finite(metrics)))
        self._stream = self._file.open("a")
        self._draw(iteration, _finite(metrics))

    def _draw(self, iteration: int, line: Mapping[str, float | None]) -> None:
        for name, value in line.items():
            if value is not None:
                self._summaries.add_scalar(name, value, iteration)
        self._summaries.flush()

    def close(self) -> None:
        self._stream.close()
        self._summaries.close()

    def __enter__(self) -> "MetricsWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _finite(metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    """Returns the metrics without the iteration, with None for what is not finite."""
    values = {name: None if value is None else float(value) for name, value in metrics.items() if name != "iteration"}
    return {name: None if value is None or not math.isfinite(value) else value for name, value in values.items()}


def _json(iteration: int, line: Mapping[str, float | None]) -> str:
    return json.dumps({"iteration": int(iteration), **line}, allow_nan=False) + "\n"


def read_metrics(workdir: str | os.PathLike) -> list[dict[str, Any]]:
    """Returns the lines of `metrics.jsonl`, oldest first; a line that a crash broke is left out."""
    file = Path(workdir) / METRICS_FILE
    return [line for text in file.read_text().splitlines() if (line := _parse(text))] if file.exists() else []


def truncate_after(file: Path, iteration: int) -> None:
    """Drops the lines of later iterations, and broken ones, from a metrics file."""
    if not file.exists():
        return
    text = file.read_text()
    kept = [each for each in text.splitlines() if (line := _parse(each)) and line["iteration"] <= iteration]
    truncated = "".join(f"{each}\n" for each in kept)
    if truncated != text:
        write_atomically(file, truncated)


def _parse(text: str) -> dict[str, Any] | None:
    """Returns the object of a line, or None where a crash cut it short."""
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and isinstance(line.get("iteration"), int) else None
