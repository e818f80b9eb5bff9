"""Sends the metrics of a run to Weights & Biases and MLflow, whose packages are extras.

Where they go is set as for any other program: by `wandb login`, `WANDB_MODE` and `WANDB_PROJECT`, and by
`MLFLOW_TRACKING_URI` and `MLFLOW_EXPERIMENT_NAME`. The default project and experiment are `alphagat`.
"""

import importlib
import importlib.util
import json
import math
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from alphagat import bounded_json
from alphagat.errors import UserError
from alphagat.runs.atomic_files import write_atomically

FILE = "trackers.json"  # the identifier of the tracked run, by tracker
RUN = "run"  # in that file, the run to which the identifiers belong
PROJECT = "alphagat"
NOT_IN_NAMES = re.compile(r"[^\w./ -]")  # of MLflow's metrics
MAX_PARAMS = 100  # of one request to MLflow
ITERATION = "iteration"  # the x axis of charts in Weights & Biases


class Tracker(NamedTuple):
    """An open tracker.

    Attributes:
      identifier: of the tracked run, which a later start of the same run continues.
      log: takes finite values by name, and the iteration.
      close: marks the tracked run as ended.
    """

    identifier: str
    log: Callable[[Mapping[str, float], int], None]
    close: Callable[[], None]


def check_installed(names: Sequence[str]) -> None:
    """Raises UserError if the package of a tracker is missing."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            raise UserError(f"config.trackers={name}: install it by pip install 'alphagat[{name}]'")


class Trackers:
    """Several trackers; a context manager. A tracker that fails is left out from then on, and the run goes on."""

    def __init__(self, names: Sequence[str], folder: Path, settings: Mapping[str, Any], run: str):
        """Continues the tracked runs of `folder`, or starts new ones.

        Args:
          names: those of `OPENERS`.
          settings: the config of the run, by field.
          run: identifies the settings that never change in a run. If another run was in `folder`, this one is new.

        Raises:
          UserError: a tracker cannot be reached.
        """
        known = _read_identifiers(folder / FILE) if names else {}
        if known.get(RUN, run) != run:
            known = {}
        self._trackers: dict[str, Tracker] = {}
        for name in names:
            try:
                package = importlib.import_module(name)
                self._trackers[name] = OPENERS[name](package, folder, known.get(name), settings)
            except Exception as error:  # of any kind, by the network or the tracker's settings
                self.close()
                raise UserError(f"config.trackers={name}: {_line(error)}; leave it out, or set it up") from error
            known |= {RUN: run, name: self._trackers[name].identifier}
            write_atomically(folder / FILE, json.dumps(known, indent=1) + "\n")  # now, in case the next one fails

    def add(self, values: Mapping[str, float], iteration: int) -> list[str]:
        """Sends the finite values of an iteration. Returns a line for each tracker that failed."""
        finite = {name: float(value) for name, value in values.items() if math.isfinite(value)}
        return self._each(lambda tracker: tracker.log(finite, iteration))

    def close(self) -> None:
        self._each(lambda tracker: tracker.close())

    def _each(self, do: Callable[[Tracker], None]) -> list[str]:
        notes = []
        for name, tracker in list(self._trackers.items()):
            try:
                do(tracker)
            except Exception as error:
                del self._trackers[name]
                notes.append(f"{name} gets no more metrics of this run: {_line(error)}")
        return notes

    def __enter__(self) -> "Trackers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_wandb(wandb: Any, folder: Path, identifier: str | None, settings: Mapping[str, Any]) -> Tracker:
    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        name=folder.resolve().name,
        id=identifier,
        resume="allow",
        dir=str(folder),
        config=dict(settings),
        settings=wandb.Settings(silent=True, console="off"),
    )
    # As a metric of its own, because wandb drops what is logged at a step before its last one, as after a rollback.
    run.define_metric("*", step_metric=ITERATION)
    return Tracker(run.id, lambda values, iteration: run.log({**values, ITERATION: iteration}), run.finish)


def _open_mlflow(mlflow: Any, folder: Path, identifier: str | None, settings: Mapping[str, Any]) -> Tracker:
    client, entities = mlflow.MlflowClient(), mlflow.entities
    run = identifier or _start_mlflow_run(client, entities, folder.resolve().name, settings)
    client.update_run(run, status="RUNNING")

    def log(values: Mapping[str, float], iteration: int) -> None:
        now = round(1000 * time.time())
        named = [(NOT_IN_NAMES.sub("_", name), value) for name, value in values.items()]
        client.log_batch(run, metrics=[entities.Metric(name, value, now, iteration) for name, value in named])

    return Tracker(run, log, lambda: client.set_terminated(run))


def _start_mlflow_run(client: Any, entities: Any, name: str, settings: Mapping[str, Any]) -> str:
    experiment_name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
    found = client.get_experiment_by_name(experiment_name)
    experiment = found.experiment_id if found else client.create_experiment(experiment_name)
    run = client.create_run(experiment, run_name=name).info.run_id
    params = [entities.Param(field, str(value)) for field, value in settings.items()]
    for start in range(0, len(params), MAX_PARAMS):
        client.log_batch(run, params=params[start : start + MAX_PARAMS])
    return run


OPENERS = {"mlflow": _open_mlflow, "wandb": _open_wandb}  # by the name of the package, which is that of the extra


def _read_identifiers(file: Path) -> dict[str, str]:
    """Returns the identifiers by tracker; none if the file is missing or damaged."""
    try:
        found = bounded_json.read(file)
    except (OSError, ValueError):
        return {}
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
