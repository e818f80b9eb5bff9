"""The metrics of a run, in `metrics.jsonl` (one JSON object per iteration) and for TensorBoard."""

import json
import math
import os
import re
import shutil
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from alphagat import bounded_json
from alphagat.errors import UserError
from alphagat.runs.atomic_files import free_name, move_if_wrong_type, write_atomically
from alphagat.runs.events import Events
from alphagat.wording import counted

METRICS_FILE = "metrics.jsonl"
TENSORBOARD_FOLDER = "tensorboard"
CHECKSUM = "crc32"  # the last field of a line
SEALED = re.compile(rb'(\{.*), "%s": "([0-9a-f]{8})"\}' % CHECKSUM.encode())
LOSSES = ("train/policy_loss", "train/value_loss")  # of every run; displays show them first
# Fields of a line with an evaluation; the last is the iteration of the opponent `previous`.
RESULTS, NUM_GAMES, PREVIOUS_ITERATION = "results", "num_games", "previous_iteration"
FINITE = {"frames", "hours", NUM_GAMES, PREVIOUS_ITERATION}
BOARD, TRAINED_BOARD = "board", "trained_board"
TRAIN = "train/"  # prefix of the learner's metrics
TEXTS = (BOARD, TRAINED_BOARD)

# Names of results.
ELO, WIN_RATE = "elo", "win_rate"
SCORE, SCORE_RATIO = "score", "score_ratio"  # of single-player games
ORACLE, HOLDOUT = "oracle/", "holdout/"  # prefixes: one result per measure

# A line of `metrics.jsonl`: `iteration`, `board`, scalars by name, and after an evaluation `num_games` and `results`.
# `trained_board`, if present, is the board of the scalars of `train/`.
# A scalar may be null, unless it is one of `FINITE`.
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
    """Appends one line per iteration to `metrics.jsonl`, and its scalars to a TensorBoard file; a context manager.

    On resume, pass the restored iteration: lines that a killed run wrote after it are dropped, so each iteration
    appears once.
    """

    def __init__(
        self,
        workdir: str | os.PathLike,
        *,
        restored_iteration: int = 0,
        boards: Sequence[str] = (),
        settings: Mapping[str, Any] | None = None,
    ):
        """Drops lines after `restored_iteration`. With several `boards`, TensorBoard's tags name the board.

        A new run also writes its `settings`, by name, for TensorBoard. `notes` says what was damaged and where it is
        kept.
        """
        folder = Path(workdir)
        self._several_boards = len(boards) > 1
        self._file = folder / METRICS_FILE
        self.notes = [
            *move_if_wrong_type(self._file, Path.is_file),
            *move_if_wrong_type(folder / TENSORBOARD_FOLDER, Path.is_dir),
            *truncate_after(self._file, restored_iteration),
        ]
        self._stream = self._file.open("a")
        # Without the suffix, a second start within the same second would overwrite this file.
        self._events = Events(
            folder / TENSORBOARD_FOLDER,
            purge_step=restored_iteration + 1,
            suffix=f".{restored_iteration}.{os.getpid()}",
        )
        if settings and not restored_iteration:
            losses = dict.fromkeys(LOSSES, 0.0)
            tags = [tag for board in boards or ("",) for tag in tagged({BOARD: board} | losses, self._several_boards)]
            self._events.describe(settings, tags)

    def write(self, iteration: int, metrics: Line) -> None:
        """Writes the metrics of one iteration and flushes. A non-finite value becomes null and has no TensorBoard
        point.
        """
        self._stream.write(_json(iteration, metrics))
        self._stream.flush()
        self._draw(iteration, metrics)

    def sync(self) -> None:
        """Waits until all lines are on disk, where they survive a power loss."""
        os.fsync(self._stream.fileno())

    def amend(self, iteration: int, metrics: Line) -> None:
        """Adds metrics to the line of `iteration`, which must be the last; writes a new line if it is missing."""
        lines = read_metrics(self._file.parent)
        before = lines.pop() if lines and lines[-1]["iteration"] == iteration else {}
        text = "".join(_json(line["iteration"], line) for line in lines)
        self._stream.close()
        write_atomically(self._file, text + _json(iteration, {**before, **metrics}))
        self._stream = self._file.open("a")
        self._draw(iteration, metrics)

    def draw_game(self, iteration: int, board: str, drawing: str) -> None:
        """Adds a picture of a game, an SVG document, to TensorBoard."""
        self._events.add_picture(f"games/{board}", drawing, iteration)

    def _draw(self, iteration: int, line: Line) -> None:
        tags = tagged(line, self._several_boards)
        self._events.add({tag: value for tag, value in tags.items() if math.isfinite(value)}, iteration)

    def close(self) -> None:
        self._stream.close()
        self._events.close()

    def __enter__(self) -> "MetricsWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def last_value(lines: Sequence[Line], name: str) -> Any:
    """Returns the last value of a metric; None if no line has one. Late evaluations may have a line of their own."""
    return next((line[name] for line in reversed(lines) if line.get(name) is not None), None)


def tagged(line: Line, several_boards: bool) -> dict[str, float]:
    """Returns the values of a line by TensorBoard tag: `eval/vs_random/win_rate`, or `eval/hex:7/vs_random/win_rate`
    with several boards. Nothing reads these names back.
    """

    def tag(section: str, name: str, board: str) -> str:
        return f"{section}/{board}/{name}" if several_boards else f"{section}/{name}"

    tags = {}
    for name, value in line.items():
        if name in ("iteration", *TEXTS, RESULTS, PREVIOUS_ITERATION) or value is None:
            continue
        section, _, rest = name.partition("/")
        if name == NUM_GAMES:
            tags[f"eval/{name}"] = value
        elif rest:
            tags[tag(section, rest, board_of(line, name))] = value
        else:
            tags[f"run/{name}"] = value
    for each in line.get(RESULTS, ()):
        if each.name.startswith(HOLDOUT):
            name = tag("holdout", each.name.removeprefix(HOLDOUT), each.board)
        else:
            name = tag("eval", f"vs_{each.opponent}/{each.name}" if each.opponent else each.name, each.board)
        ends = {"": each.value, "_low": each.low, "_high": each.high}
        tags |= {name + end: value for end, value in ends.items() if value is not None}
    return tags


def board_of(line: Line, name: str) -> str:
    """Returns the board of a scalar; empty if its line names none."""
    board = line.get(BOARD, "")
    return line.get(TRAINED_BOARD, board) if name.startswith(TRAIN) else board


def _json(iteration: int, line: Line) -> str:
    """Returns a line of the file. Its last field is the CRC-32 of the line without this field."""
    values = {name: _plain(value) for name, value in line.items() if name != "iteration"}
    text = json.dumps({"iteration": int(iteration), **values}, allow_nan=False)
    return f'{text[:-1]}, "{CHECKSUM}": "{zlib.crc32(text.encode()):08x}"}}\n'


def _has_changed(text: bytes) -> bool:
    """Returns whether a line differs from its checksum; lines of older versions have none."""
    match = SEALED.fullmatch(text.rstrip())
    return match is not None and zlib.crc32(match[1] + b"}") != int(match[2], 16)


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

    Omits damaged lines, such as one that a crash cut short.

    Raises:
      UserError: the file cannot be read.
    """
    return [line for text in _texts(Path(workdir) / METRICS_FILE) if (line := _parse(text))]


def last_evaluation(lines: Sequence[Line], iteration: int | None = None) -> Line | None:
    """Returns the last line with an evaluation, at most `iteration` if given; None without one."""
    evaluated = [each for each in lines if RESULTS in each and (iteration is None or each["iteration"] <= iteration)]
    return evaluated[-1] if evaluated else None


def truncate_after(file: Path, iteration: int) -> list[str]:
    """Drops the lines of later iterations, and damaged lines, from a metrics file.

    A last line that a crash cut short is lost. Returns a note if other lines are damaged or missing; then a file with
    unreadable lines is kept beside the new one.
    """
    texts = _texts(file)
    lines = [_parse(text) for text in texts]
    kept = [(text, line["iteration"]) for text, line in zip(texts, lines) if line and line["iteration"] <= iteration]
    damaged = sum(line is None and text.endswith(b"\n") for text, line in zip(texts, lines))
    missing = iteration - len({number for _, number in kept})
    notes = []
    if damaged or missing:
        notes = [f"{file}: {counted(damaged, 'damaged line')} dropped; {missing} of {iteration} iterations missing"]
        if None in lines:  # not for lines that an earlier start dropped, or each start would keep a copy
            copy = free_name(file)
            shutil.copy2(file, copy)
            notes[0] += f"; {copy.name} keeps the old file"
    whole = [text.rstrip() + b"\n" for text, _ in kept]
    if whole != texts:
        write_atomically(file, b"".join(whole).decode())
    return notes


def _texts(file: Path) -> list[bytes]:
    """Returns the lines with their ends; none if the file does not exist. Raises UserError."""
    try:
        return file.read_bytes().splitlines(keepends=True)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}; restore it or move it away") from error


def _parse(text: bytes) -> dict[str, Any] | None:
    """Returns the object of a line, with `Result` objects in `results`; None if the line is damaged."""
    if _has_changed(text):
        return None
    try:
        line = bounded_json.parse(text.decode())
        line.pop(CHECKSUM, None)
        if (
            not isinstance(line["iteration"], int)
            or line["iteration"] < 1
            or (RESULTS in line and NUM_GAMES not in line)
        ):
            return None
        if RESULTS in line:
            line[RESULTS] = [_parse_result(fields) for fields in line[RESULTS]]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    scalars = {name: value for name, value in line.items() if name not in (*TEXTS, RESULTS)}
    has_board = isinstance(line.get(BOARD), str) or (BOARD not in line and not any("/" in name for name in scalars))
    has_board &= isinstance(line.get(TRAINED_BOARD, ""), str)
    are_numbers = all(map(_is_number, scalars.values())) and None not in map(line.get, FINITE & line.keys())
    return line if has_board and are_numbers else None


def _parse_result(fields: Any) -> Result:
    """Reads an object of `results`; null becomes `math.nan` itself, since one NaN object equals itself inside lists.

    Raises:
      TypeError: it is not a result.
    """
    result = Result(**fields)
    is_named = isinstance(result.name, str) and isinstance(result.board, str)
    is_named &= result.opponent is None or isinstance(result.opponent, str)
    if not is_named or not all(map(_is_number, (result.value, result.low, result.high))):
        raise TypeError(f"{fields} is not a result")
    return result._replace(value=math.nan) if result.value is None else result


def _is_number(value: Any) -> bool:
    """Returns whether a JSON value is a number that a float can hold, or null."""
    return value is None or (isinstance(value, int | float) and abs(value) <= sys.float_info.max)
