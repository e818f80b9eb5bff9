"""Every position once in each epoch, in another order each time, and the same from wherever reading begins."""

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
    """Returns the numbers of the positions, `[blocks, K, rows]`."""
    return np.stack([block.state for block in make_loader(ALL, **(OPTIONS | {"first": 0} | options))])


def test_an_epoch_has_every_position_once_and_another_order_than_the_next():
    blocks = read()
    assert blocks.shape == (10, UPDATES, BATCH)
    epochs = blocks.reshape(-1)[: blocks.size // SIZE * SIZE].reshape(-1, SIZE)
    assert all(sorted(epoch) == [*range(SIZE)] for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == len(epochs) == 8
    assert (read(seed=6) != blocks).any()


def test_it_goes_on_where_it_was_left():
    np.testing.assert_array_equal(read(first=4), read()[4:])


def test_two_processes_read_what_one_would():
    halves = [read(rows=slice(0, 4)), read(rows=slice(4, 8))]
    np.testing.assert_array_equal(np.concatenate(halves, axis=2), read())
    within_an_epoch = [set(half[0].flat) for half in halves]
    assert len(within_an_epoch[0] | within_an_epoch[1]) == UPDATES * BATCH


def test_all_that_belongs_to_a_position_stays_together():
    block = next(iter(make_loader(ALL, first=0, **OPTIONS)))
    np.testing.assert_array_equal(block.game, block.state)
    np.testing.assert_array_equal(block.policy, block.state % 3)


def test_without_grain_a_line_says_what_to_install(monkeypatch):
    def fail(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", fail)
    with pytest.raises(UserError, match=r"pip install 'alphagat\[pretrain\]'"):
        make_loader(ALL, first=0, **OPTIONS)
