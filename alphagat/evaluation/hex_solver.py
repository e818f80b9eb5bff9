"""Exact solver for Hex: a search that generalises every win to a pattern, which then decides other positions.

A pattern of a player is a set of cells, the `area`, and a subset, the `stones`. The player wins every position in which
they own all `stones` and the opponent owns no cell of `area`, even with the opponent to move. Three rules generate all
patterns; a search finds the positions to which the third rule applies.

- A chain from border to border is a pattern; its area equals its stones.
- A pattern that lacks one stone is a threat: the player wins if it is their move.
- Threats whose areas share no empty cell form a pattern: any move of the opponent leaves one threat intact.

The third is the OR rule of H-search (Anshelevich, A hierarchical approach to computer Hex, 2002) for whole boards. Only
moves in the intersection of all threats need be searched: the must-play region of Hayward et al. (Solving 7x7 Hex with
domination, fill-in, and virtual connections, 2005).
"""

import numpy as np

from alphagat.games.hex import NEIGHBOURS

Bits = int  # a set of cells, bit `i` for cell `i` of the board in row-major order


class HexSolver:
    """Exact values of positions of one board without the swap rule; learned patterns persist.

    Solving all first moves takes one second on 5x5 (8,500 patterns per player) and eleven minutes on 6x6 (470,000).
    """

    def __init__(self, size: int):
        """Makes a solver of `size` x `size` cells, at most 7."""
        self.num_cells = size * size
        self._patterns = (_Patterns(), _Patterns())
        self._cells = 1 << np.arange(self.num_cells)
        cells = np.arange(self.num_cells).reshape(size, size)
        self._half_turn, self._mirror = cells[::-1, ::-1].ravel().tolist(), cells.T.ravel().tolist()
        for chain in _chains(size):
            self._patterns[0].add(chain, chain)
            mirrored = _permute(chain, self._mirror)
            self._patterns[1].add(mirrored, mirrored)

    def value(self, position: tuple[Bits, Bits]) -> int:
        """Returns 1 if the player to move wins, else -1.

        Args:
          position: the stones of player 0, who connects top and bottom and moves first, and those of player 1.
        """
        player = (position[0] | position[1]).bit_count() % 2
        mine, theirs = (_View(self._patterns[owner]) for owner in (player, 1 - player))
        return 1 if self._wins(player, position[player], position[1 - player], mine, theirs) else -1

    def _wins(self, player: int, own: Bits, other: Bits, mine: "_View", theirs: "_View") -> bool:
        """Returns whether the player to move wins, and learns a pattern that proves it."""
        empty = (1 << self.num_cells) - 1 & ~own & ~other
        order = None
        while True:
            mine, theirs = mine.narrow(other), theirs.narrow(own)
            if len(mine.threats(own)[0]):
                return True
            stones, areas = theirs.threats(other)
            if (stones & ~other == 0).any():
                return False
            must_play = empty & int(np.bitwise_and.reduce(areas))  # equals `empty` if there are no threats
            if not must_play:
                self._learn(1 - player, *_combine(stones & other, areas, empty))
                return False
            if order is None:
                order = np.argsort(-mine.weights(own, self._cells) - theirs.weights(other, self._cells)).tolist()
            order = [cell for cell in order if must_play >> cell & 1]
            # The pattern learned after a move either decides this position or is a threat that excludes the move.
            self._wins(1 - player, other, own | 1 << order.pop(0), theirs, mine)

    def _learn(self, player: int, stones: Bits, area: Bits) -> None:
        """Adds a pattern and its images; reflection in the long diagonal exchanges the players' borders."""
        turned = _permute(stones, self._half_turn), _permute(area, self._half_turn)
        for pattern in {(stones, area), turned}:
            self._patterns[player].add(*pattern)
            self._patterns[1 - player].add(*(_permute(cells, self._mirror) for cells in pattern))


class _Patterns:
    """The patterns of one player: the first `count` columns of `table`, `[2, capacity]` of stones and areas."""

    def __init__(self):
        self.table, self.count = np.zeros((2, 1024), np.int64), 0

    def add(self, stones: Bits, area: Bits) -> None:
        if self.count == self.table.shape[1]:
            self.table = np.concatenate([self.table, np.zeros_like(self.table)], axis=1)
        self.table[:, self.count] = stones, area
        self.count += 1


class _View:
    """The patterns of one player that the opponent's stones do not block."""

    def __init__(self, patterns: _Patterns, live: np.ndarray | None = None, num_seen: int = 0):
        """Makes a view of `live` `[2, L]`, the unblocked ones of the first `num_seen` patterns."""
        self._patterns, self._num_seen = patterns, num_seen
        self._live = np.zeros((2, 0), np.int64) if live is None else live

    def narrow(self, other: Bits) -> "_View":
        """Returns the view for opponent stones `other`, including patterns learned since."""
        count = self._patterns.count
        live = np.concatenate([self._live, self._patterns.table[:, self._num_seen : count]], axis=1)
        return _View(self._patterns, live[:, live[1] & other == 0], count)

    def threats(self, own: Bits) -> tuple[np.ndarray, np.ndarray]:
        """Returns `[T]` stones and `[T]` areas of the patterns that lack at most one stone."""
        stones, areas = self._live
        lacking = stones & ~own
        is_threat = lacking & (lacking - 1) == 0
        return stones[is_threat], areas[is_threat]

    def weights(self, own: Bits, cells: np.ndarray) -> np.ndarray:
        """Returns the weighted share of patterns that lack each cell; a pattern weighs 1/8 per missing stone.

        Of bases from 2 to 100, and of currents in a resistor network, base 8 searched the fewest positions.
        """
        lacking = self._live[0] & ~own
        weights = 8.0 ** -np.bitwise_count(lacking)
        return weights @ (lacking[:, None] & cells != 0) / max(weights.sum(), 1e-30)


def _combine(stones: np.ndarray, areas: np.ndarray, empty: Bits) -> tuple[Bits, Bits]:
    """Combines threats `[T]` that share no empty cell into a pattern with a small area.

    Args:
      stones: stones of each threat that are on the board.
      areas: contain no stone of the opponent.
    """
    chosen, common, area = [], empty, 0
    while common:
        gain = np.bitwise_count(common & ~areas) / (np.bitwise_count(areas & ~area) + 0.1)
        chosen.append(int(gain.argmax()))
        common &= int(areas[chosen[-1]])
        area |= int(areas[chosen[-1]])
    for threat in tuple(chosen):
        rest = [other for other in chosen if other != threat]
        if rest and not np.bitwise_and.reduce(areas[rest]) & empty:
            chosen = rest
    # Stones common to all areas belong to the pattern, or the opponent could occupy those cells.
    shared = np.bitwise_and.reduce(areas[chosen])
    return int(np.bitwise_or.reduce(stones[chosen]) | shared), int(np.bitwise_or.reduce(areas[chosen]))


def _permute(cells: Bits, to: list[int]) -> Bits:
    permuted = 0
    while cells:
        lowest = cells & -cells
        permuted |= 1 << to[lowest.bit_length() - 1]
        cells ^= lowest
    return permuted


def _chains(size: int) -> list[Bits]:
    """Lists the minimal chains from top to bottom."""
    near = []
    for row in range(size):
        for column in range(size):
            around = [(row + down, column + right) for down, right in NEIGHBOURS]
            near.append([r * size + c for r, c in around if 0 <= r < size and 0 <= c < size])
    chains = []

    def extend(chain: Bits, last: int, closed: Bits) -> None:
        if last >= size * (size - 1):
            chains.append(chain)
            return
        for cell in near[last]:
            if not closed >> cell & 1:
                extend(chain | 1 << cell, cell, closed | sum(1 << other for other in near[last]))

    top = (1 << size) - 1
    for start in range(size):
        extend(1 << start, start, top)
    return chains
