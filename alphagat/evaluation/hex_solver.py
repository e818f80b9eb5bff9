"""Who wins at Hex: a search that remembers every win as a pattern, which then decides other positions as well.

A pattern of a player is a set of cells, the `area`, and some of them, the `stones`: the player wins wherever all of
`stones` are theirs and no cell of `area` is the opponent's, although the opponent is to move. Three rules make all of
them, and a search for the positions where to apply the third.

- A chain from border to border is a pattern; its area is its stones.
- A pattern that lacks one stone is a threat: the player wins if it is their move.
- Threats whose areas have no empty cell in common are a pattern: any move of the opponent leaves one of them alone.

The last is the OR rule of H-search (Anshelevich, A hierarchical approach to computer Hex, 2002) for whole boards. The
cells that all threats have in common are the moves worth a look, the must-play region of Hayward et al. (Solving 7x7
Hex with domination, fill-in, and virtual connections, 2005).
"""

import numpy as np

from alphagat.games.hex import NEIGHBOURS

Bits = int  # a set of cells, bit `i` for cell `i` of the board in row-major order


class HexSolver:
    """Exact values of the positions of one board without the swap rule. What it has learned stays.

    All first moves of 5x5 take a second and leave 8,500 patterns of each player; of 6x6 eleven minutes and 470,000.
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
        """Returns 1 where the player to move wins, -1 where they lose.

        Args:
          position: the stones of player 0, who joins top and bottom, and of player 1. Player 0 moves first.
        """
        player = (position[0] | position[1]).bit_count() % 2
        mine, theirs = (_View(self._patterns[owner]) for owner in (player, 1 - player))
        return 1 if self._wins(player, position[player], position[1 - player], mine, theirs) else -1

    def _wins(self, player: int, own: Bits, other: Bits, mine: "_View", theirs: "_View") -> bool:
        """Tells whether the player to move wins, and sees to it that a pattern tells so from now on."""
        empty = (1 << self.num_cells) - 1 & ~own & ~other
        order = None
        while True:
            mine, theirs = mine.narrow(other), theirs.narrow(own)
            if len(mine.threats(own)[0]):
                return True
            stones, areas = theirs.threats(other)
            if (stones & ~other == 0).any():
                return False
            must_play = empty & int(np.bitwise_and.reduce(areas))  # all of `empty` without threats
            if not must_play:
                self._learn(1 - player, *_combine(stones & other, areas, empty))
                return False
            if order is None:
                order = np.argsort(-mine.weights(own, self._cells) - theirs.weights(other, self._cells)).tolist()
            order = [cell for cell in order if must_play >> cell & 1]
            # The pattern of the position after a move decides this one too, or is a threat that leaves the move out.
            self._wins(1 - player, other, own | 1 << order.pop(0), theirs, mine)

    def _learn(self, player: int, stones: Bits, area: Bits) -> None:
        """Adds a pattern and its images. The mirror at the long diagonal takes one player's borders to the other's."""
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
    """Those patterns of one player that the opponent's stones still allow: fewer with each."""

    def __init__(self, patterns: _Patterns, live: np.ndarray | None = None, num_seen: int = 0):
        """Makes a view of `live` `[2, L]`, which is what it found among the first `num_seen` patterns."""
        self._patterns, self._num_seen = patterns, num_seen
        self._live = np.zeros((2, 0), np.int64) if live is None else live

    def narrow(self, other: Bits) -> "_View":
        """Returns the view once the opponent has the stones `other`, with what was learned in the meantime."""
        count = self._patterns.count
        live = np.concatenate([self._live, self._patterns.table[:, self._num_seen : count]], axis=1)
        return _View(self._patterns, live[:, live[1] & other == 0], count)

    def threats(self, own: Bits) -> tuple[np.ndarray, np.ndarray]:
        """Returns `[T]` stones and `[T]` areas of the patterns that lack at most one stone."""
        stones, areas = self._live
        lacking = stones & ~own
        found = lacking & (lacking - 1) == 0
        return stones[found], areas[found]

    def weights(self, own: Bits, cells: np.ndarray) -> np.ndarray:
        """Returns for each of `cells` its share of what is lacking; a pattern counts 1/8 for each stone it lacks.

        Of 2 to 100 in place of 8, and of the current in a network of resistors, this took the fewest positions.
        """
        lacking = self._live[0] & ~own
        weights = 8.0 ** -np.bitwise_count(lacking)
        return weights @ (lacking[:, None] & cells != 0) / max(weights.sum(), 1e-30)


def _combine(stones: np.ndarray, areas: np.ndarray, empty: Bits) -> tuple[Bits, Bits]:
    """Makes a pattern of threats `[T]` that have no empty cell in common, of few of them and with a small area.

    Args:
      stones: those in place.
      areas: no cell of these is the opponent's.
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
    # Stones that all areas share are of the pattern even where no threat needs them: the opponent could stand there.
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
    """Lists the chains from top to bottom that hold no shorter one."""
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
