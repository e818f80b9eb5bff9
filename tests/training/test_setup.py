"""A run without accelerators uses as many CPU devices as its config asks for, or one per core."""

import math
import os

import jax
import pytest

from alphagat.config import MeshConfig
from alphagat.errors import UserError
from alphagat.runtime import distributed, sharding
from alphagat.training.setup import make_configured_mesh, make_run, num_cpu_devices
from tests.training.tiny import tiny_config


@pytest.mark.parametrize(
    ("cores", "quota", "expected"),
    [
        (1, 4, 1),
        (2, math.inf, 2),
        (3, math.inf, 2),
        (6, 6, 4),
        (64, math.inf, 8),
        (64, 2, 2),
        (64, 3.5, 4),
        (64, 0.5, 1),
    ],
)
def test_devices_per_core_are_a_power_of_two(monkeypatch, cores: int, quota: float, expected: int):
    monkeypatch.setattr(sharding, "cpu_quota", lambda: quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)), raising=False)
    assert num_cpu_devices(MeshConfig()) == expected


def test_the_mesh_decides_first(monkeypatch):
    assert num_cpu_devices(MeshConfig(data=3, model=2)) == 6
    for mesh in MeshConfig(model=2), MeshConfig(stage=2), MeshConfig(actors=1):
        assert num_cpu_devices(mesh) == 0
    monkeypatch.setattr(distributed, "num_processes", lambda: 2)
    assert num_cpu_devices(MeshConfig()) == 0


@pytest.mark.parametrize(("actors", "share"), [(0, 32), (4, 64)])
def test_micro_batches_must_divide_the_share_of_a_device(actors: int, share: int):
    config = tiny_config()
    config.learner.batch_size = config.replay.min_size = 256
    config.mesh.actors = actors
    mesh = make_configured_mesh(config)
    for config.learner.num_micro_batches in (0, 1, share):
        make_run(config, mesh)
    config.learner.num_micro_batches = 2 * share
    with pytest.raises(UserError, match=rf"num_micro_batches={2 * share} does not divide the {share} positions per"):
        make_run(config, mesh)


def test_actors_and_learners_are_in_one_process(monkeypatch):
    config = tiny_config()
    config.mesh.actors = 4
    mesh = make_configured_mesh(config)
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(UserError, match=r"config\.mesh\.actors=4 needs all devices in one process; set it to 0"):
        make_run(config, mesh)
