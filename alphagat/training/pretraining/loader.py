"""Batches of recorded positions: reshuffled in each epoch, prefetched by threads, and identical after a resume."""

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from alphagat.errors import UserError
from alphagat.training.pretraining.positions import Positions

THREADS, READ_AHEAD = 2, 2  # blocks


def make_loader(
    positions: Positions,
    *,
    num_updates: int,
    batch_size: int,
    first: int,
    last: int,
    seed: int,
    rows: slice = slice(None),
) -> Iterator[Positions]:
    """Returns the blocks `first` to `last` (excluded) of a run, each `[num_updates, rows]` before each shape.

    A run goes through all positions in one order, then in another, and so on; a batch may hold the end of one such
    epoch and the beginning of the next. A block depends on its number alone, not on where reading began.

    Args:
      batch_size: over all processes.
      rows: of each batch, those of this process; every process has all positions, and reads its own rows only.

    Raises:
      UserError: grain is not installed.
    """
    grain = _import_grain()
    stream = grain.MapDataset.range(positions.size).seed(seed).shuffle().repeat()
    places = np.arange(num_updates)[:, None] * batch_size + np.arange(batch_size)[rows]

    def read(block: int) -> Positions:
        start = block * num_updates * batch_size
        drawn = np.array([stream[start + place] for place in places.flat])
        return positions.take(drawn.reshape(places.shape))

    options = grain.ReadOptions(num_threads=THREADS, prefetch_buffer_size=READ_AHEAD)
    return iter(grain.MapDataset.range(first, last).map(read).to_iter_dataset(options))


def _import_grain() -> Any:
    try:
        return importlib.import_module("grain")
    except ImportError as error:
        raise UserError("recorded games need grain, not installed: pip install 'alphagat[pretrain]'") from error
