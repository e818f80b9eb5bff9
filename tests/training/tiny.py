"""The smallest run that has every part of a real one."""

import json
from pathlib import Path
from typing import Any

from jax.sharding import Mesh

from alphagat.config import Config
from alphagat.config_fields import to_dict
from alphagat.runs.checkpoint_writer import CheckpointWriter
from alphagat.runs.folder import open_run_folder
from alphagat.runtime import sharding
from alphagat.training.setup import Run, Setup, make_setups
from alphagat.training.state import init_state

NUM_ITERATIONS = 12


def tiny_config() -> Config:
    """Returns Hex 2x2, one game per device; updates start in the second iteration, matches are every fourth."""
    config = Config(boards=("hex:2",), num_iterations=NUM_ITERATIONS)
    config.network.width = 8
    config.network.num_blocks = 1
    config.network.num_heads = 2
    config.network.mlp_ratio = 1
    config.search.num_simulations = 2
    config.search.max_num_considered_actions = 2
    config.selfplay.num_games = 16
    config.selfplay.plies_per_iteration = 4
    config.replay.capacity = 256
    config.replay.min_size = 64
    config.learner.batch_size = 16
    config.learner.replay_ratio = 0.5
    config.evaluation.every = 4
    config.evaluation.num_games = 4
    config.evaluation.num_simulations = 2
    config.evaluation.opponents = ("random", "previous")
    config.checkpoint.every = 1
    return config


def tiny_config_with_actors(num_actors: int) -> Config:
    """Returns a config for four devices, some of which only play."""
    config = tiny_config()
    config.mesh.data, config.mesh.actors, config.num_iterations = 4, num_actors, 60
    config.learner.batch_size, config.selfplay.num_games, config.selfplay.num_groups = 24, 36, 12
    return config


def change_config(folder: Path, **values: Any) -> None:
    """Changes fields of the config of a run folder; those of a section are a dict."""
    file = folder / "config.json"
    config = json.loads(file.read_text())
    for name, value in values.items():
        config[name] = config[name] | value if isinstance(value, dict) else value
    file.write_text(json.dumps(config))


def write_config(config: Config, file: Path) -> Path:
    """Makes `file` a config file for commands."""
    values = to_dict(config)
    file.write_text(
        f"from alphagat import config_validation\nget_config = lambda: config_validation.from_dict({values!r})"
    )
    return file


def tiny_setup() -> Setup:
    return make_setups(tiny_config())[0]


def run_of(setup: Setup, mesh: Mesh) -> Run:
    """Returns the run on one board that `setup` describes."""
    return Run(setup.config, mesh, (setup,))


def tiny_run(num_devices: int = 1) -> Run:
    return run_of(tiny_setup(), sharding.make_mesh(num_devices))


def save_tiny_run(folder: Path, *iterations: int) -> Path:
    """Makes `folder` a run folder whose checkpoints at `iterations` all hold the initial state."""
    open_run_folder(folder, tiny_config())
    with CheckpointWriter(folder) as writer:
        for iteration in iterations:
            writer.save(init_state(tiny_run()), iteration)
    return folder
