"""The board that each iteration trains on."""

import functools
from collections.abc import Sequence

import numpy as np


@functools.lru_cache(maxsize=4)
def board_schedule(
    num_iterations: int, num_boards: int, weights: tuple[float, ...], final_weights: tuple[float, ...]
) -> tuple[int, ...]:
    """Returns the index of the board of each iteration.

    The shares change linearly from `weights` to `final_weights`. Neither needs to sum to 1. Without weights, all shares
    are equal; without final weights, they are constant, and the order does not depend on `num_iterations`. Each
    iteration trains the board that is furthest behind its share, so boards alternate evenly.
    """
    if num_boards == 1:
        return (0,) * num_iterations
    first = _shares(weights or np.ones(num_boards))
    change = _shares(final_weights) - first if final_weights else np.zeros(num_boards)
    owed, boards = np.zeros(num_boards), []
    for iteration in range(num_iterations):
        progress = iteration / max(num_iterations - 1, 1)
        owed += first + progress * change
        boards.append(int(np.argmax(owed)))
        owed[boards[-1]] -= 1
    return tuple(boards)


def shortest_schedule(
    needed: Sequence[int],
    weights: tuple[float, ...],
    final_weights: tuple[float, ...],
    most: int,
    *,
    last_counts: bool,
) -> int | None:
    """Returns a number of iterations with which each board gets those that it needs; one fewer would not do.

    Args:
      most: the largest number to try with several boards; None is returned if it does not do.
      last_counts: whether the last iteration counts.
    """

    def is_enough(num_iterations: int) -> bool:
        boards = board_schedule(num_iterations, len(needed), weights, final_weights)
        counted = boards if last_counts else boards[:-1]
        return all(counted.count(board) >= number for board, number in enumerate(needed))

    low, high = 0, sum(needed) + (not last_counts)
    if len(needed) == 1:
        return high
    while high > most or not is_enough(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _shares(weights: Sequence[float] | np.ndarray) -> np.ndarray:
    array = np.asarray(weights, np.float64)
    return array / array.sum()
