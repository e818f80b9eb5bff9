"""The stones that chains need in Hex, against a search for shortest paths, one cell at a time."""

import heapq

import jax
import numpy as np
import pytest

from alphagat.games.hex_distances import stones_needed

NEIGHBOURS = ((-1, 0), (-1, 1), (0, 1), (1, 0), (1, -1), (0, -1))  # in a circle


def shortest_from_top(stones: np.ndarray) -> np.ndarray:
    """Returns, for each cell, the stones needed to connect it with the top border; infinity if there is no way."""
    size = len(stones)

    def is_empty(row: int, column: int) -> bool:
        return 0 <= row < size and 0 <= column < size and stones[row, column] == 0

    def reach(row: int, column: int):
        """Yields the cells that one step or an open bridge reaches, from a cell or from the border (row -1)."""
        for number, here in enumerate(NEIGHBOURS):
            there = NEIGHBOURS[(number + 1) % 6]
            between = (row + here[0], column + here[1]), (row + there[0], column + there[1])
            yield between[0]
            if all(is_empty(*cell) for cell in between):
                yield row + here[0] + there[0], column + here[1] + there[1]

    needed = np.full(stones.shape, np.inf)
    queue = [(0, -1, column) for column in range(-1, size + 1)]
    while queue:
        count, row, column = heapq.heappop(queue)
        for after in reach(row, column):
            if min(after) < 0 or max(after) >= size or stones[after] < 0:
                continue
            total = count + int(stones[after] == 0)
            if total < needed[after]:
                needed[after] = total
                heapq.heappush(queue, (total, *after))
    return needed


def chains(stones: np.ndarray) -> np.ndarray:
    first, second = shortest_from_top(stones), shortest_from_top(stones[::-1, ::-1])[::-1, ::-1]
    return np.minimum(first + second - (stones == 0), len(stones))


@pytest.mark.parametrize("size", [2, 3, 5, 7, 11, 19])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_chains_are_shortest_paths(size, share):
    random = np.random.default_rng(size)
    boards = random.choice([-1, 0, 1], size=(12, size, size), p=[share / 2, 1 - share, share / 2]).astype(np.int16)
    expected = [np.stack([chains(board), chains(-board.T).T]) for board in boards]
    np.testing.assert_array_equal(jax.jit(jax.vmap(stones_needed))(boards), expected)


def test_a_bridge_counts_until_the_opponent_enters_it():
    #  a b c d
    # 1 . . . .
    #  2 . x . .
    #   3 . . . .      b2 has a bridge to the top (b1, c1) and one to a4 (a3, b3), the bottom row
    #    4 . . . .
    board = np.zeros((4, 4), np.int16)
    board[1, 1] = 1
    assert stones_needed(board)[0].min() == 1
    assert stones_needed(board)[0, 3, 0] == 1  # with a stone on a4
    board[2, 0] = -1  # a3: the way down is b3, from which a bridge leads to the bottom
    assert stones_needed(board)[0].min() == 1
    assert stones_needed(board)[0, 3, 0] == 2
    board[0, 1] = board[0, 2] = -1  # now d1 and c3 make the shortest chain
    assert np.argwhere(stones_needed(board)[0] == 2).tolist() == [[0, 3], [2, 2]]


def test_a_winner_needs_no_stone_and_the_other_player_has_no_chain():
    board = np.zeros((5, 5), np.int16)
    board[:, 2] = 1
    needed = np.asarray(stones_needed(board))
    assert needed[0].min() == 0
    assert (needed[0] == 0).sum() == 5
    assert (needed[1] == 5).all()
