"""Trained networks as single files: safetensors, with the config of the run that made them.

The package ships some, by the first word of the boards that they play: `alphagat.load("hex")`.
"""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from alphagat import config_fields, config_validation
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.games.base import Game
from alphagat.networks import Network
from alphagat.runs.atomic_files import check_new
from alphagat.training.setup import make_params

ENDING = ".safetensors"
FOLDER = Path(__file__).parents[1] / "weights"


def shipped_names() -> list[str]:
    """Returns the names of the networks that come with the package."""
    return sorted(file.stem for file in FOLDER.glob(f"*{ENDING}"))


def find_file(source: str | Path) -> Path | None:
    """Returns the file that `source` stands for, a path or the name of a network that is shipped; None: neither."""
    path = Path(source)
    if path.suffix == ENDING:
        return path
    return FOLDER / f"{path}{ENDING}" if str(path) in shipped_names() and not path.is_dir() else None


def write(file: Path, params: Any, config: Config, iteration: int) -> None:
    """Writes the parameters, float32, and what it takes to use them. Raises UserError where the file exists."""
    check_new(file, ENDING)
    flat: dict[str, Any] = flatten_dict(params, sep="/")
    arrays = {name: np.ascontiguousarray(value) for name, value in jax.device_get(flat).items()}
    metadata = {"config": json.dumps(config_fields.to_dict(config)), "iteration": str(iteration)}
    save_file(arrays, file, metadata)


def read_header(file: Path) -> tuple[Config, int]:
    """Returns the config and the iteration of the run that made a file. Raises UserError: it cannot be read."""
    try:
        with safe_open(file, framework="numpy") as opened:
            metadata = opened.metadata() or {}
        return config_validation.from_dict(json.loads(metadata["config"])), int(metadata["iteration"])
    except FileNotFoundError:
        raise UserError(f"{file} does not exist; take a run folder, or one of {', '.join(shipped_names())}") from None
    except KeyError as error:
        raise UserError(f"{file} is no network of AlphaGAT: its metadata lack {error}") from error
    except (OSError, ValueError, SafetensorError) as error:
        raise UserError(f"{file} cannot be read: {error}") from error


def read_params(file: Path, game: Game, network: Network) -> Any:
    """Returns the parameters of a file, for `network` on `game`.

    Raises:
      UserError: it cannot be read, or is another network's.
    """
    try:
        with safe_open(file, framework="numpy") as opened:
            flat = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise UserError(f"{file} cannot be read: {error}") from error
    shapes = jax.eval_shape(lambda: make_params(game, network, jax.random.key(0)))
    expected: dict[str, Any] = flatten_dict(shapes, sep="/")
    if _shapes(flat) != _shapes(expected):
        raise UserError(f"{file} has other arrays than its config tells; export it again")
    return jax.device_put(unflatten_dict(flat, sep="/"))


def _shapes(arrays: dict[str, Any]) -> dict[str, tuple]:
    return {name: (leaf.shape, leaf.dtype) for name, leaf in arrays.items()}
