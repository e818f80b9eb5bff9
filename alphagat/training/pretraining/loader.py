"""Batches of recorded positions: reshuffled in each epoch, prefetched by threads, reproducible after a resume."""

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
    """Yields the blocks `first` to `last` - 1 of a run; the first axes of each array are `[num_updates, rows]`.

    Each epoch visits all positions in a new order; a batch may span two epochs. A block depends only on its number, not
    on where reading started.

    Args:
      batch_size: over all processes.
      rows: rows of each batch that this process reads; every process holds all positions.

    Raises:
      UserError: grain is not installed.
    """
    grain = import_grain()
    stream = grain.MapDataset.range(positions.size).seed(seed).shuffle().repeat()
    places = np.arange(num_updates)[:, None] * batch_size + np.arange(batch_size)[rows]

    def read(block: int) -> Positions:
        start = block * num_updates * batch_size
        drawn = np.array([stream[start + place] for place in places.flat])
        return positions.take(drawn.reshape(places.shape))

    options = grain.ReadOptions(num_threads=THREADS, prefetch_buffer_size=READ_AHEAD)
    return iter(grain.MapDataset.range(first, last).map(read).to_iter_dataset(options))


def import_grain() -> Any:
    """Returns the library that shuffles and prefetches. Raises UserError if it is not installed."""
    try:
        return importlib.import_module("grain")
    except ImportError as error:
        raise UserError(
            "recorded games need grain, which is not installed: pip install 'alphagat[pretrain]'"
        ) from error
