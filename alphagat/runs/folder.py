"""The folder of a run: its config, its environment, and whether another config may resume it."""

import fnmatch
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import jax

from alphagat import bounded_json, config_fields, config_validation
from alphagat.bounds import shown
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.runs.atomic_files import is_unfinished, write_atomically
from alphagat.runs.lock import LOCK_FILE, unwritable
from alphagat.runs.metrics import METRICS_FILE

CONFIG_FILE = "config.json"
CHECKPOINT_FOLDER = "checkpoints"
ENVIRONMENT_FILE = "env.json"
# Fields that may change on resume: the length, monitoring, devices and memory, but no array's shape or meaning.
CHANGEABLE = (
    "num_iterations",
    "trackers",
    "mesh.",
    "network.backend",
    "network.remat",
    "selfplay.audit_every",
    "learner.num_micro_batches",
    "evaluation.",
    "checkpoint.",
)
PACKAGES = ("alphagat", "jax", "jaxlib", "flax", "optax", "mctx", "jraph", "orbax-checkpoint", "chex", "numpy")


def is_run(folder: Path) -> bool:
    return (folder / CONFIG_FILE).is_file()


def has_progress(folder: Path) -> bool:
    """Returns whether a run in `folder` has finished an iteration or saved a checkpoint."""
    metrics, checkpoints = folder / METRICS_FILE, folder / CHECKPOINT_FOLDER
    return (metrics.is_file() and metrics.stat().st_size > 0) or (checkpoints.is_dir() and any(checkpoints.iterdir()))


def check_run_folder(workdir: str | os.PathLike, config: Config) -> Path:
    """Checks that `workdir` is new, empty, or the folder of this run; changes nothing.

    A run without progress may be replaced: it failed, or was stopped, before its first iteration.

    Raises:
      UserError: `workdir` is empty, a file or no valid name, has characters that Orbax reads as a pattern, or contains
        other files, or a run that differs in a field that may not change.
    """
    if not os.fspath(workdir):  # a Path would mean the current folder
        raise UserError("--workdir '': it is empty; name a folder")
    folder = Path(workdir)
    absolute = _absolute(folder)
    if any("\\" in part or not fnmatch.fnmatchcase(part, part) for part in absolute.parts):
        raise UserError(
            f"--workdir {shown(str(absolute))!r}: brackets and backslashes in its path would make its checkpoints "
            "unreadable; name another folder"
        )
    try:
        folder.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # a name that is too long or has a NUL byte, or a closed folder on the way
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f"--workdir {shown(str(folder))!r}: {reason}; name another folder") from error
    above = next(each for each in absolute.parents if each.exists())
    if not above.is_dir():
        raise UserError(f"--workdir {folder}: {above} is a file; name another folder")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--workdir {folder} is a file; name a folder")
    if not folder.exists() and not os.access(above, os.W_OK | os.X_OK):
        raise UserError(f"--workdir {folder}: {above} cannot be written; name another folder")
    if is_run(folder):
        before = read_config(folder)
        if has_progress(folder):
            _check_same_run(folder, before, config)
    elif folder.exists() and not all(
        each.name == LOCK_FILE or is_unfinished(each, CONFIG_FILE) for each in folder.iterdir()
    ):
        raise UserError(
            f"--workdir {folder} has files but no {CONFIG_FILE}, so it is not a run; name an empty or new folder"
        )
    return folder


def _absolute(folder: Path) -> Path:
    """Returns the absolute path of a run. Raises UserError if it has none, or one that libraries cannot write."""
    try:
        path = folder.absolute()
    except FileNotFoundError:
        raise UserError(f"--workdir {folder}: the current folder was deleted; change to another one") from None
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UserError(f"--workdir {shown(str(path))!r}: the name is not UTF-8; rename it or name another") from None
    return path


def open_run_folder(workdir: str | os.PathLike, config: Config) -> Path:
    """Creates or checks the folder of this run, and writes `config.json` and `env.json`.

    A resumed run keeps its config, except for the fields that may change; those take their new values. `env.json` gets
    one entry per start, the latest last. Call it after the devices are configured.

    Raises:
      UserError: as `check_run_folder`, or the folder cannot be written.
    """
    folder = check_run_folder(workdir, config)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / CONFIG_FILE, _json(config_fields.to_dict(config)))
        starts = read_starts(folder)
        write_atomically(folder / ENVIRONMENT_FILE, _json([*starts, describe_environment()]))
    except OSError as error:
        raise unwritable(folder, error) from error
    return folder


def read_config(workdir: str | os.PathLike) -> Config:
    """Returns the config of the run in `workdir`.

    Raises:
      UserError: there is no run, or its `config.json` is unreadable.
    """
    file = Path(workdir) / CONFIG_FILE
    _absolute(Path(workdir))
    try:
        values = bounded_json.read(file)
    except FileNotFoundError:
        raise UserError(f"{file} does not exist, so {workdir} holds no run; name the folder of a run") from None
    except NotADirectoryError:
        raise UserError(f"{workdir} is not a folder; name the folder of a run") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {error}; restore it, or name another folder") from error
    try:
        return config_validation.from_dict(values)
    except UserError as error:
        raise UserError(f"{file}: {error}") from error


def identity_of(config: Config) -> dict[str, Any]:
    """Returns the fields that never change in a run, as JSON values by path."""
    fixed = {each.path: each.value for each in config_fields.fields(config) if not each.path.startswith(CHANGEABLE)}
    return json.loads(json.dumps(fixed))


def fingerprint_of(config: Config) -> str:
    """Returns a hash of the fields that never change in a run."""
    return hashlib.sha256(json.dumps(identity_of(config), sort_keys=True).encode()).hexdigest()[:16]


def describe_environment() -> dict[str, Any]:
    """Returns the environment of a run: versions, devices, XLA and JAX variables, and the command."""
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "argv": sys.argv,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version for name, version in package_versions().items() if version},
        "devices": [str(device.device_kind) for device in jax.devices()],
        "backend": jax.default_backend(),
        "num_processes": jax.process_count(),
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith(("XLA_", "JAX_"))},
    }


def _check_same_run(folder: Path, before: Config, now: Config) -> None:
    scale = before.evaluation.value_scale
    if now.evaluation.value_scale != scale and before.selfplay.full_search_fraction < 1:
        raise UserError(
            f"config.evaluation.value_scale={now.evaluation.value_scale}, but the run in {folder} has {scale}: the "
            f"fast searches of its self-play use it, so it cannot change; set it to {scale}, or name another --workdir"
        )
    if bool(before.pretrain.games) != bool(now.pretrain.games):
        command = "pretrain" if before.pretrain.games else "train"
        kind = "trains on recorded games" if before.pretrain.games else "trains by self-play"
        raise UserError(
            f"--workdir {folder}: this run {kind}; resume it with alphagat {command}, or start a new run "
            "in another folder from its weights (config.init_from)"
        )
    if bool(before.mesh.actors) != bool(now.mesh.actors):
        raise UserError(
            f"config.mesh.actors={now.mesh.actors}, but the run in {folder} has {before.mesh.actors}: it cannot "
            f"change from or to 0; set it to {before.mesh.actors}, or name another --workdir"
        )
    is_fixed = now.final_board_weights and (now.mesh.actors or now.pretrain.games)
    if is_fixed and now.num_iterations != before.num_iterations:
        reason = "the learners are one iteration late" if now.mesh.actors else "it decides which batches come next"
        field = "config.mesh.actors" if now.mesh.actors else "recorded games"
        raise UserError(
            f"config.num_iterations={now.num_iterations}, but the run in {folder} has {before.num_iterations}: with "
            f"{field} and config.final_board_weights it cannot change, because it changes the order of the boards, and "
            f"{reason}; set it to {before.num_iterations}"
        )
    fields_before = {field.path: field.value for field in config_fields.fields(before)}
    for field in config_fields.fields(now):
        if field.value != fields_before[field.path] and not field.path.startswith(CHANGEABLE):
            old, new = (config_fields.text_of(value) for value in (fields_before[field.path], field.value))
            raise UserError(
                f"config.{field.path}={new}, but the run in {folder} has {old}: set --config.{field.path}={old} to "
                "resume it, or name another --workdir"
            )


def read_starts(workdir: str | os.PathLike) -> list[dict[str, Any]]:
    """Returns the entries of `env.json`, the earliest start first.

    An unreadable file counts as empty, because nothing depends on it; entries that are no objects are left out.
    """
    try:
        starts = bounded_json.read(Path(workdir) / ENVIRONMENT_FILE)
    except (OSError, ValueError):
        return []
    return [start for start in starts if isinstance(start, dict)] if isinstance(starts, list) else []


def package_versions() -> dict[str, str | None]:
    """Returns the versions of the packages on which a run depends; None: not installed."""
    return {name: _version(name) for name in PACKAGES}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"
