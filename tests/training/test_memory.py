"""Micro-batches: as many as the memory asks for, and never a program that does not fit."""

import pytest

from alphagat import sharding
from alphagat.errors import UserError
from alphagat.training.memory import compile_iterations, memory_needed
from alphagat.training.setup import make_setups
from alphagat.training.state import init_state
from tests.training.tiny import tiny_config

pytestmark = pytest.mark.usefixtures("compiled_once")


def compile_with(num_micro_batches: int, memory_gb: float = 0.0):
    config = tiny_config()
    config.mesh.data, config.mesh.memory_gb = 1, memory_gb
    config.network.width, config.learner.batch_size, config.replay.min_size = 16, 256, 256
    config.learner.num_micro_batches = num_micro_batches
    setups, mesh, said = make_setups(config), sharding.make_mesh(1), []
    (program,) = compile_iterations(setups, mesh, init_state(setups, mesh), said.append)
    return memory_needed(program), said


def test_micro_batches_save_memory_and_are_taken_as_it_takes():
    whole, said = compile_with(1)
    assert said == []
    eighth, _ = compile_with(8)
    assert eighth < 0.8 * whole
    between = (eighth + whole) / 2 / 1e9
    needed, said = compile_with(0, between)
    assert needed <= between * 1e9
    assert said[0].startswith("hex:2: 0.00 GB per device are needed")
    assert "each device computes its part of a batch in" in said[-1]


def test_what_never_fits_is_refused():
    with pytest.raises(UserError, match=r"config\.learner\.batch_size=256: the program of hex:2 does not fit"):
        compile_with(2, 1e-6)


def test_micro_batches_divide_the_share_of_a_device():
    with pytest.raises(UserError, match=r"config\.learner\.num_micro_batches=3 does not divide the 256 positions"):
        compile_with(3)
