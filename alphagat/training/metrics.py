"""The metrics of a run, as `metrics.jsonl` (one JSON object per iteration) and for TensorBoard."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboardX import SummaryWriter

from alphagat.training.files import write_atomically

METRICS_FILE = "metrics.jsonl"
TENSORBOARD_FOLDER = "tensorboard"


class MetricsWriter:
    """Appends one line per iteration to both files; a context manager.

    On resume, pass the iteration that was restored: what a killed run wrote beyond it is dropped, so each iteration
    appears once.
    """

    def __init__(self, workdir: str | os.PathLike, *, restored_iteration: int = 0):
        folder = Path(workdir)
        file = folder / METRICS_FILE
        truncate_after(file, restored_iteration)
        self._stream = file.open("a")
        # TensorBoard hides what earlier processes wrote for purge_step and later. The suffix keeps the file of a start
        # apart from that of a start within the same second, which would be overwritten.
        self._summaries = SummaryWriter(
            str(folder / TENSORBOARD_FOLDER),
            purge_step=restored_iteration + 1,
            filename_suffix=f".{restored_iteration}.{os.getpid()}",
        )

    def write(self, iteration: int, metrics: Mapping[str, float]) -> None:
        """Writes the metrics of one iteration and flushes. A value that is not finite becomes null, and no point."""
        values = {name: float(value) for name, value in metrics.items() if name != "iteration"}
        line = {name: value if math.isfinite(value) else None for name, value in values.items()}
        self._stream.write(json.dumps({"iteration": int(iteration), **line}, allow_nan=False) + "\n")
        self._stream.flush()
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
