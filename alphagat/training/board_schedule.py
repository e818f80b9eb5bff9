"""The board that each iteration trains on."""

from collections.abc import Sequence

import numpy as np


def board_schedule(
    num_iterations: int, num_boards: int, weights: Sequence[float], final_weights: Sequence[float]
) -> list[int]:
    """Returns the index of the board of each iteration.

    The shares change linearly from `weights` to `final_weights`. Neither needs to sum to 1. Without weights, all shares
    are equal; without final weights, they are constant, and the order does not depend on `num_iterations`. Each
    iteration trains the board that is furthest behind its share, so boards alternate evenly.
    """
    first = _shares(weights or np.ones(num_boards))
    change = _shares(final_weights) - first if len(final_weights) else np.zeros(num_boards)
    owed, boards = np.zeros(num_boards), []
    for iteration in range(num_iterations):
        progress = iteration / max(num_iterations - 1, 1)
        owed += first + progress * change
        boards.append(int(np.argmax(owed)))
        owed[boards[-1]] -= 1
    return boards


def _shares(weights: Sequence[float] | np.ndarray) -> np.ndarray:
    array = np.asarray(weights, np.float64)
    return array / array.sum()
