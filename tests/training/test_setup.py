"""A run without accelerators uses as many CPU devices as its config asks for, or one per core."""

import os

import pytest

from alphagat.config import MeshConfig
from alphagat.runtime import distributed
from alphagat.training.setup import num_cpu_devices


@pytest.mark.parametrize(("cores", "expected"), [(1, 1), (2, 2), (3, 2), (6, 4), (64, 8)])
def test_devices_per_core_are_a_power_of_two(monkeypatch, cores: int, expected: int):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cores)), raising=False)
    assert num_cpu_devices(MeshConfig()) == expected


def test_the_mesh_decides_first(monkeypatch):
    assert num_cpu_devices(MeshConfig(data=3, model=2)) == 6
    for mesh in MeshConfig(model=2), MeshConfig(stage=2), MeshConfig(actors=1):
        assert num_cpu_devices(mesh) == 0
    monkeypatch.setattr(distributed, "num_processes", lambda: 2)
    assert num_cpu_devices(MeshConfig()) == 0
