"""A run in progress, as its live view shows it."""

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import Any

from alphagat.errors import UserError
from alphagat.reporting import curves
from alphagat.reporting.page import tiles_of
from alphagat.runs.folder import CHECKPOINT_FOLDER, CONFIG_FILE, read_config
from alphagat.runs.metrics import METRICS_FILE, read_metrics
from alphagat.runs.saved_checkpoints import list_steps
from alphagat.serving.roster import Roster


class LiveRun:
    """Reads the progress of a run, and keeps the players of a roster at its newest checkpoint. Thread-safe."""

    def __init__(self, folder: Path, roster: Roster, board: str | None = None):
        """Reads the run in `folder`, the only source of `roster`. Raises UserError if there is none.

        Args:
          board: of the games that the page shows; None: those of the run, in turn.
        """
        self._folder, self._roster, self._board = folder, roster, board
        self._lock = threading.Lock()
        self._seen: Any = None  # what `_described` was made from
        self._described: dict[str, Any] = {}
        self._newest = roster.iteration()
        self._time = self._time_of(self._newest)
        self.describe()

    def describe(self) -> dict[str, Any]:
        """Returns the progress, the latest results and the charts.

        `network` is the iteration of the players, and `silent_s` the age of the newest metrics in seconds; None before
        the first.

        Raises:
          ServiceError: the run was started anew, and the loaded players do not fit (`Roster.refresh`).
        """
        with self._lock:
            self._load_newest()
            metrics, config = (_state_of(self._folder / name) for name in (METRICS_FILE, CONFIG_FILE))
            seen = *(each and (each.st_size, each.st_mtime_ns) for each in (metrics, config)), self._newest
            # A run that is started anew has no config for a moment.
            if seen != self._seen and (config or not self._described):
                self._described, self._seen = self._read(), seen
            return self._described | {"silent_s": max(0.0, time.time() - metrics.st_mtime) if metrics else None}

    def _load_newest(self) -> None:
        newest = max(list_steps(self._folder), default=0)
        # A run that was started anew has smaller iterations, but writes them later.
        if newest > self._newest or self._time_of(newest) > self._time:
            with contextlib.suppress(UserError):  # deleted by the run meanwhile
                self._roster.refresh()
                self._newest = self._roster.iteration()
                self._time = self._time_of(self._newest)

    def _time_of(self, iteration: int) -> int:
        """Returns when a checkpoint was written, in nanoseconds; 0 if there is none."""
        state = _state_of(self._folder / CHECKPOINT_FOLDER / str(iteration))
        return state.st_mtime_ns if state else 0

    def _read(self) -> dict[str, Any]:
        config, lines = read_config(self._folder), read_metrics(self._folder)
        figures = [curves.draw(chart, lines) for chart in curves.charts_of(lines, config.boards)]
        return {
            "name": self._folder.resolve().name,
            "iteration": lines[-1]["iteration"] if lines else 0,
            "end": config.num_iterations,
            "network": self._newest,
            "boards": [self._board] if self._board else list(config.boards),
            "tiles": [tile._asdict() for tile in tiles_of(config.boards, lines)],
            "charts": [
                {
                    "title": each.title,
                    "legend": [entry._asdict() for entry in each.legend],
                    "drawings": dict(each.drawings),
                }
                for each in figures
            ],
        }


def _state_of(file: Path) -> os.stat_result | None:
    """Returns the state of a file; None if it does not exist."""
    with contextlib.suppress(OSError):
        return file.stat()
    return None
