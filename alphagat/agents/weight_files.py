"""Trained networks as single safetensors files, with the config of their run.

The package ships some of them: `alphagat.load("hex")`.
"""

import json
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from alphagat import bounded_json, config_fields, config_validation
from alphagat.bounds import MAX_ITERATIONS, Limits
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.runs.atomic_files import check_new, write_atomically

ENDING = ".safetensors"
FOLDER = Path(__file__).parents[1] / "weights"
ITERATIONS = Limits(at_least=0, at_most=MAX_ITERATIONS)
SAFETENSORS_TYPES = {"float32": "F32"}  # by the name of numpy; all parameters are float32


def shipped_names() -> list[str]:
    """Returns the names of the shipped networks, sorted."""
    return sorted(file.stem for file in FOLDER.glob(f"*{ENDING}"))


def find_file(source: str | Path) -> Path | None:
    """Returns the file of a path or of a shipped network's name; None if `source` is neither.

    A folder takes precedence over a file or a shipped network of the same name.
    """
    path = Path(source)
    if path.is_dir():
        return None
    if path.suffix == ENDING:
        return path
    return FOLDER / f"{path}{ENDING}" if os.fspath(source) in shipped_names() else None


def write(file: Path, params: Any, config: Config, iteration: int) -> None:
    """Writes the parameters, float32, with the config and the iteration. Raises UserError if the file exists."""
    check_new(file, ENDING)
    flat: dict[str, Any] = flatten_dict(params, sep="/")
    arrays = {name: np.ascontiguousarray(value) for name, value in jax.device_get(flat).items()}
    metadata = {"config": json.dumps(config_fields.to_dict(config)), "iteration": str(iteration)}
    write_atomically(file, save(arrays, metadata))  # unlike `save_file`, with the usual permissions


def read_header(file: Path) -> tuple[Config, int]:
    """Reads a file's config and iteration, not its parameters. Raises UserError if the file cannot be read."""
    try:
        with safe_open(file, framework="numpy") as opened:
            metadata = opened.metadata() or {}
        config = config_validation.from_dict(bounded_json.parse(metadata["config"]))
        iteration = int(metadata["iteration"])
        if not ITERATIONS.accept(iteration):
            raise ValueError(f"its iteration is {iteration}, but must be {ITERATIONS}")
        return config, iteration
    except FileNotFoundError:
        raise UserError(f"{file} does not exist; use a run folder, or one of {', '.join(shipped_names())}") from None
    except KeyError as error:
        raise UserError(
            f"{file} is not an AlphaGAT network: its metadata lacks {error}; use a file of alphagat export"
        ) from error
    except (OSError, ValueError, SafetensorError) as error:
        raise UserError(f"{file} cannot be read: {error}") from error


def read_params(file: Path, shapes: Any) -> Any:
    """Reads the parameters of a file.

    Args:
      shapes: the expected pytree of `ShapeDtypeStruct`.

    Raises:
      UserError: the file is damaged, or its arrays do not fit `shapes`.
    """
    leaves: dict[str, Any] = flatten_dict(shapes, sep="/")
    expected = {name: (leaf.shape, SAFETENSORS_TYPES[str(leaf.dtype)]) for name, leaf in leaves.items()}
    try:
        with safe_open(file, framework="numpy") as opened:
            parts = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118
            found = {name: (tuple(part.get_shape()), part.get_dtype()) for name, part in parts.items()}
            if found != expected:
                raise UserError(
                    f"{file} has arrays that do not match its config; use the version of AlphaGAT that wrote it"
                )
            flat = {name: opened.get_tensor(name) for name in parts}
    except (OSError, SafetensorError) as error:
        raise UserError(f"{file} cannot be read: {error}") from error
    return jax.device_put(unflatten_dict(flat, sep="/"))
