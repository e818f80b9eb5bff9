"""The metrics of a run, in `metrics.jsonl` (one JSON object per iteration) and for TensorBoard."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tensorboardX import SummaryWriter

from alphagat.runs.atomic_files import write_atomically

METRICS_FILE = "metrics.jsonl"
TENSORBOARD_FOLDER = "tensorboard"
RESULTS, NUM_GAMES = "results", "num_games"  # fields of a line with an evaluation

# Names of results.
ELO, WIN_RATE = "elo", "win_rate"
SCORE, SCORE_RATIO = "score", "score_ratio"  # of single-player games
ORACLE, HOLDOUT = "oracle/", "holdout/"  # prefixes: one result per measure

# A line of `metrics.jsonl`: `iteration`, `board`, scalars by name, and after an evaluation `num_games` and `results`.
Line = Mapping[str, Any]


class Result(NamedTuple):
    """One number measured by an evaluation.

    Attributes:
      name: name of the metric, independent of board and opponent.
      board: name of the board.
      value: NaN if nothing was measured.
      low: lower end of the 95% interval; None without one.
      high: upper end.
      opponent: opponent of a comparison; None for other metrics.
    """

    name: str
    board: str
    value: float
    low: float | None = None
    high: float | None = None
    opponent: str | None = None


class MetricsWriter:
    """Appends one line per iteration to both files; a context manager.

    On resume, pass the restored iteration: lines that a killed run wrote after it are dropped, so each iteration
    appears once.
    """

    def __init__(self, workdir: str | os.PathLike, *, restored_iteration: int = 0, several_boards: bool = False):
        """Drops lines after `restored_iteration`. With `several_boards`, TensorBoard's tags name the board."""
        folder = Path(workdir)
        self._several_boards = several_boards
        self._file = folder / METRICS_FILE
        truncate_after(self._file, restored_iteration)
        self._stream = self._file.open("a")
        # TensorBoard hides the events of earlier processes from purge_step on. The suffix separates the file of a start
        # from that of another start within the same second, which it would overwrite.
        self._summaries = SummaryWriter(
            str(folder / TENSORBOARD_FOLDER),
            purge_step=restored_iteration + 1,
            filename_suffix=f".{restored_iteration}.{os.getpid()}",
        )

    def write(self, iteration: int, metrics: Line) -> None:
        """Writes the metrics of one iteration and flushes. A non-finite value becomes null and has no TensorBoard
        point.
        """
        self._stream.write(_json(iteration, metrics))
        self._stream.flush()
        self._draw(iteration, metrics)

    def amend(self, iteration: int, metrics: Line) -> None:
        """Adds metrics to the line of `iteration`, which must be the last; writes a new line if it is missing."""
        lines = read_metrics(self._file.parent)
        before = lines.pop() if lines and lines[-1]["iteration"] == iteration else {}
        text = "".join(_json(line["iteration"], line) for line in lines)
        self._stream.close()
        write_atomically(self._file, text + _json(iteration, {**before, **metrics}))
        self._stream = self._file.open("a")
        self._draw(iteration, metrics)

    def _draw(self, iteration: int, line: Line) -> None:
        for tag, value in tagged(line, self._several_boards).items():
            if math.isfinite(value):
                self._summaries.add_scalar(tag, value, iteration)
        self._summaries.flush()

    def close(self) -> None:
        self._stream.close()
        self._summaries.close()

    def __enter__(self) -> "MetricsWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def tagged(line: Line, several_boards: bool) -> dict[str, float]:
    """Returns the values of a line by TensorBoard tag: `eval/vs_random/win_rate`, or `eval/hex:7/vs_random/win_rate`
    with several boards. Nothing reads these names back.
    """

    def tag(section: str, name: str, board: str) -> str:
        return f"{section}/{board}/{name}" if several_boards else f"{section}/{name}"

    tags = {}
    for name, value in line.items():
        if name in ("iteration", "board", RESULTS) or value is None:
            continue
        section, _, rest = name.partition("/")
        if name == NUM_GAMES:
            tags[f"eval/{name}"] = value
        elif rest:
            tags[tag(section, rest, line.get("board", ""))] = value
        else:
            tags[name] = value
    for each in line.get(RESULTS, ()):
        if each.name.startswith(HOLDOUT):
            name = tag("holdout", each.name.removeprefix(HOLDOUT), each.board)
        else:
            name = tag("eval", f"vs_{each.opponent}/{each.name}" if each.opponent else each.name, each.board)
        ends = {"": each.value, "_low": each.low, "_high": each.high}
        tags |= {name + end: value for end, value in ends.items() if value is not None}
    return tags


def _json(iteration: int, line: Line) -> str:
    values = {name: _plain(value) for name, value in line.items() if name != "iteration"}
    return json.dumps({"iteration": int(iteration), **values}, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """Returns a JSON value: an object for a result, None for a non-finite number."""
    if isinstance(value, Result):
        return {name: _plain(field) for name, field in value._asdict().items()}
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Sequence):
        return [_plain(each) for each in value]
    return float(value) if math.isfinite(value) else None


def read_metrics(workdir: str | os.PathLike) -> list[dict[str, Any]]:
    """Returns the lines of `metrics.jsonl`, oldest first, with `Result` objects in `results`.

    Omits a line that a crash cut short.
    """
    file = Path(workdir) / METRICS_FILE
    lines = [line for text in file.read_text().splitlines() if (line := _parse(text))] if file.exists() else []
    return [line | {RESULTS: list(map(_parse_result, line[RESULTS]))} if RESULTS in line else line for line in lines]


def last_evaluation(lines: Sequence[Line], iteration: int | None = None) -> Line | None:
    """Returns the last line with an evaluation, at most `iteration` if given; None without one."""
    evaluated = [each for each in lines if RESULTS in each and (iteration is None or each["iteration"] <= iteration)]
    return evaluated[-1] if evaluated else None


def truncate_after(file: Path, iteration: int) -> None:
    """Drops the lines of later iterations, and incomplete lines, from a metrics file."""
    if not file.exists():
        return
    text = file.read_text()
    kept = [each for each in text.splitlines() if (line := _parse(each)) and line["iteration"] <= iteration]
    truncated = "".join(f"{each}\n" for each in kept)
    if truncated != text:
        write_atomically(file, truncated)


def _parse(text: str) -> dict[str, Any] | None:
    """Returns the object of a line, or None if a crash cut it short."""
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and isinstance(line.get("iteration"), int) else None


def _parse_result(fields: Mapping[str, Any]) -> Result:
    """Reads an object of `results`; null becomes `math.nan` itself, since one NaN object equals itself inside lists."""
    result = Result(**fields)
    return result._replace(value=math.nan) if result.value is None else result
