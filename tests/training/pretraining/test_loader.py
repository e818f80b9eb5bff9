"""Each epoch visits every position once in a new order, independent of where reading starts."""

import importlib

import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.training.pretraining.loader import make_loader
from tests.training.pretraining.test_positions import positions

SIZE, UPDATES, BATCH = 30, 3, 8
OPTIONS = {"num_updates": UPDATES, "batch_size": BATCH, "last": 10, "seed": 5}
ALL = positions(np.arange(SIZE))


def read(**options) -> np.ndarray:
    """Returns the indices of the positions, `[blocks, K, rows]`."""
    return np.stack([block.state for block in make_loader(ALL, **(OPTIONS | {"first": 0} | options))])


def test_each_epoch_has_every_position_once_in_a_new_order():
    blocks = read()
    assert blocks.shape == (10, UPDATES, BATCH)
    epochs = blocks.reshape(-1)[: blocks.size // SIZE * SIZE].reshape(-1, SIZE)
    assert all(sorted(epoch) == [*range(SIZE)] for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == len(epochs) == 8
    assert (read(seed=6) != blocks).any()


def test_resume_continues_the_order():
    np.testing.assert_array_equal(read(first=4), read()[4:])


def test_two_processes_read_the_batches_of_one():
    halves = [read(rows=slice(0, 4)), read(rows=slice(4, 8))]
    np.testing.assert_array_equal(np.concatenate(halves, axis=2), read())
    within_an_epoch = [set(half[0].flat) for half in halves]
    assert len(within_an_epoch[0] | within_an_epoch[1]) == UPDATES * BATCH


def test_fields_of_a_position_stay_together():
    block = next(iter(make_loader(ALL, first=0, **OPTIONS)))
    np.testing.assert_array_equal(block.game, block.state)
    np.testing.assert_array_equal(block.policy, block.state % 3)


def test_without_grain_the_error_names_the_package(monkeypatch):
    def fail(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(UserError, match=r"pip install 'alphagat\[pretrain\]'"):
        make_loader(ALL, first=0, **OPTIONS)
