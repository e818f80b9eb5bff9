"""The board that each iteration trains on."""

from collections.abc import Sequence

import numpy as np


def board_schedule(
    num_iterations: int, num_boards: int, weights: Sequence[float], final_weights: Sequence[float]
) -> list[int]:
    """Returns the index of the board of each iteration.

    The shares change linearly from `weights` to `final_weights`. Neither needs to sum to 1. Without weights, all shares
    are equal; without final weights, they are constant. Each iteration trains the board that is furthest behind its
    share, so boards alternate evenly and a resumed run has the same order.
    """
    first = _shares(weights or np.ones(num_boards))
    last = _shares(final_weights) if len(final_weights) else first
    owed, boards = np.zeros(num_boards), []
    for iteration in range(num_iterations):
        progress = iteration / max(num_iterations - 1, 1)
        owed += (1 - progress) * first + progress * last
        boards.append(int(np.argmax(owed)))
        owed[boards[-1]] -= 1
    return boards


def _shares(weights: Sequence[float] | np.ndarray) -> np.ndarray:
    array = np.asarray(weights, np.float64)
    return array / array.sum()
