"""Micro-batches: as many as the memory asks for, and never a program that does not fit."""

import dataclasses

import pytest

from alphagat import sharding
from alphagat.errors import UserError
from alphagat.training import compilation
from alphagat.training.compilation import compile_iterations
from alphagat.training.memory import memory_needed
from alphagat.training.setup import make_setups
from alphagat.training.state import init_state
from tests.training.tiny import tiny_config


def compile_with(num_micro_batches: int, memory_gb: float = 0.0):
    config = tiny_config()
    config.mesh.data, config.mesh.memory_gb = 1, memory_gb
    config.network.width, config.learner.batch_size, config.replay.min_size = 16, 256, 256
    config.learner.num_micro_batches = num_micro_batches
    setups, mesh, said = make_setups(config), sharding.make_mesh(1), []
    (program,) = compile_iterations(setups, mesh, init_state(setups, mesh), said.append)
    return program, said


def test_micro_batches_save_memory():
    whole, eighth = (memory_needed(compile_with(count)[0]) for count in (1, 8))
    assert 0 < eighth < 0.8 * whole


@dataclasses.dataclass
class Planned:
    """Stands for a program that needs 1 GB, and 16 GB more for a batch as a whole."""

    num_micro_batches: int

    def lower(self, *_):
        return self

    def compile(self):
        return self


@pytest.fixture
def planned(monkeypatch):
    monkeypatch.setattr(compilation, "make_iteration", lambda setup, _: Planned(setup.config.learner.num_micro_batches))
    monkeypatch.setattr(compilation, "memory_needed", lambda program: 1e9 + 16e9 / program.num_micro_batches)


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize(("memory_gb", "count"), [(0, 1), (17, 1), (16.9, 2), (4, 8), (1.1, 256)])
def test_as_few_as_fit_are_taken(memory_gb: float, count: int):
    program, said = compile_with(0, memory_gb)
    assert program.num_micro_batches == count
    if count > 1:
        assert said[0] == f"hex:2: 17.00 GB per device are needed, of {memory_gb:.2f}"
        assert said[-1] == f"hex:2: each device computes its part of a batch in {count}, to fit into its memory"


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("count", [0, 2])
def test_what_never_fits_is_refused(count: int):
    with pytest.raises(UserError, match=r"config\.learner\.batch_size=256: the program of hex:2 does not fit"):
        compile_with(count, 1.01)


def test_micro_batches_divide_the_share_of_a_device():
    with pytest.raises(UserError, match=r"config\.learner\.num_micro_batches=3 does not divide the 256 positions"):
        compile_with(3)
