"""Legal moves of chess, by arithmetic on sets of squares.

Boards are from the perspective of the player to move: pawns move up, and row 0 is the top. A line to the king is the
set of squares on both a ray from the king and an opposite ray from an enemy slider. An own piece on a line is pinned.
An own piece that moves to an empty square of a line blocks a check.

Legal moves are represented as planes. A plane is the set of targets of all moves with one direction and distance. The
planes form rows of eight: row `d - 1` holds moves of distance d along the eight `STEPS`, row N - 1 the knight's
`JUMPS`, and row N the promoting steps of pawns to the last row.
"""

import functools
from collections.abc import Iterable
from typing import NamedTuple

import jax
import numpy as np

from alphagat.games.square_sets import STEPS, Squares, by_direction, constant, reach, shift, stack, walk

EMPTY, PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(7)
JUMPS = ((-2, 1), (-1, 2), (1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1))
NORTH, NORTH_EAST, EAST, WEST, NORTH_WEST = 0, 1, 2, 6, 7
PROMOTIONS = (NORTH, NORTH_EAST, NORTH_WEST)
EN_PASSANT = (NORTH_EAST, NORTH_WEST)
WAYS = np.arange(8)
KING_COLUMN = 4
# For the left and the right rook: its column, columns that must be empty, columns that must not be attacked, and the
# king's target column.
CASTLING = ((0, (1, 2, 3), (2, 3, 4), 2), (7, (5, 6), (4, 5, 6), 6))


class Side(NamedTuple):
    """One player's pieces."""

    pawns: Squares
    knights: Squares
    bishops: Squares
    rooks: Squares
    queens: Squares
    king: Squares

    def sliders(self) -> Squares:
        """Returns `[8]` by direction: the pieces that slide in this direction (and hence in the opposite one)."""
        return self.queens | self.bishops.where(WAYS % 2 == 1) | self.rooks.where(WAYS % 2 == 0)

    def leaps(self, size: int, forward: int) -> Squares:
        """Returns the squares that pawns, knights and the king attack; pawns move by `forward` rows, -1 or 1."""
        pawns = shift(self.pawns, size, ((forward, -1), (forward, 1))).union()
        return pawns | shift(self.knights, size, JUMPS).union() | shift(self.king, size, STEPS).union()


class Position(NamedTuple):
    """A board from the perspective of the player to move.

    Attributes:
      own: the pieces of the player to move.
      kinds: `[6]`, the pieces of both players, pawns to kings.
      castling: `[2]` bool, the castling rights of the player to move, left and right; None without castling.
      en_passant: the square that an enemy pawn has just jumped over, or the empty set; None without double steps.
    """

    own: Squares
    kinds: Squares
    castling: jax.Array | None
    en_passant: Squares | None

    def occupied(self) -> Squares:
        return functools.reduce(Squares.__or__, self.pieces(constant(range(64))))

    def pieces(self, mask: Squares) -> Side:
        return Side(*(self.kinds.take(kind) & mask for kind in range(6)))


class Threats(NamedTuple):
    """Squares and lines that the opponent attacks.

    Attributes:
      attacked: squares that the king must not enter; rays continue through the king.
      checkers: the pieces that give check.
      lines: `[8]` by direction from the king, the squares on which an own piece blocks a slider's line to the king.
      safe_en_passant: for each direction in `EN_PASSANT`, whether the king is safe after this capture.
    """

    attacked: Squares
    checkers: Squares
    lines: Squares
    safe_en_passant: list[jax.Array]


def row_of(size: int, row: int, columns: Iterable[int] = range(8)) -> Squares:
    return constant(row * size + column for column in columns if column < size)


def attacks(position: Position, size: int) -> tuple[Squares, Squares]:
    """Returns the squares that the player to move attacks or defends, and the same for the opponent."""
    own, enemy = position.pieces(position.own), position.pieces(~position.own)
    empty = by_direction(~position.occupied())
    far = reach(stack([own.sliders(), enemy.sliders()]), stack([empty, empty]), size)
    return far.take(0).union() | own.leaps(size, -1), far.take(1).union() | enemy.leaps(size, 1)


def threats(position: Position, own: Side, enemy: Side, size: int) -> Threats:
    """Finds what the opponent attacks; `own` and `enemy` are the pieces of the player to move and of the opponent."""
    occupied, sliders = position.occupied(), enemy.sliders()
    near = shift(own.king, size, JUMPS).union() & enemy.knights
    near |= shift(own.king, size, ((-1, -1), (-1, 1))).union() & enemy.pawns
    king = by_direction(own.king)
    starts, blocked = [sliders, king], [occupied & ~own.king, occupied]
    jumper = constant(())
    if position.en_passant is not None:
        jumper = shift(position.en_passant, size, ((1, 0),)).union()
        for direction in EN_PASSANT:
            down, right = STEPS[direction]
            taker = shift(position.en_passant, size, ((-down, -right),)).union()
            starts.append(king)
            blocked.append((occupied & ~jumper & ~taker) | position.en_passant)
    reached = reach(stack(starts), stack([by_direction(~squares) for squares in blocked]), size)
    towards, away, *taking = (reached.take(number) for number in range(len(starts)))
    return Threats(
        attacked=towards.union() | enemy.leaps(size, 1),
        checkers=(away & sliders).union() | near,
        lines=away & towards.opposite(),
        safe_en_passant=[~((rays & sliders).union() | (near & ~jumper)).any() for rays in taking],
    )


def legal_planes(position: Position, size: int) -> tuple[Squares, jax.Array]:
    """Returns the planes `[N + 1, 8]` of all legal moves, and `[]` bool, whether the king is in check."""
    own, enemy = position.pieces(position.own), position.pieces(~position.own)
    occupied = position.occupied()
    threat = threats(position, own, enemy, size)
    num_checkers, pinned = threat.checkers.size(), threat.lines.union()
    stops = (threat.checkers | (pinned & ~occupied)).where(num_checkers == 1)
    targets = ~position.own & (stops | constant(range(64)).where(num_checkers == 0))
    free = ~pinned | threat.lines | threat.lines.opposite()  # [8], squares whose pieces may move in each direction
    pawns = _pawn_moves(position, own.pawns & free, size) & targets
    near = pawns | (shift(own.king, size, STEPS) & ~position.own & ~threat.attacked)
    nothing = by_direction(constant(()))
    second = nothing
    if position.castling is not None and position.en_passant is not None:
        taken = shift(own.pawns, size, STEPS) & position.en_passant
        for way, safe in zip(EN_PASSANT, threat.safe_en_passant):
            near |= taken.where(safe & np.equal(WAYS, way))
        second = _jumps(own.pawns & free, occupied, size) & targets
        second |= _castles(position, position.castling, own, threat, size)
    jumps = shift(own.knights & ~pinned, size, JUMPS) & targets
    others = stack([near, second, *[nothing] * (size - 3), jumps, pawns & row_of(size, 0)])
    return walk(own.sliders() & free, by_direction(~occupied), targets, others, size), num_checkers > 0


def _pawn_moves(position: Position, pawns: Squares, size: int) -> Squares:
    """Returns `[8]` by direction: the targets of single steps and captures of pawns."""
    occupied = position.occupied()
    taken = (occupied & ~position.own).where((WAYS == NORTH_EAST) | (WAYS == NORTH_WEST))
    return shift(pawns, size, STEPS) & (taken | (~occupied).where(WAYS == NORTH))


def _jumps(pawns: Squares, occupied: Squares, size: int) -> Squares:
    """Returns `[8]` by direction: the targets of double pawn steps; only north is non-empty."""
    first = shift(pawns & row_of(size, size - 2), size, STEPS) & ~occupied
    return (shift(first, size, STEPS) & ~occupied).where(WAYS == NORTH)


def _castles(position: Position, rights: jax.Array, own: Side, threat: Threats, size: int) -> Squares:
    """Returns `[8]` by direction: the king's target squares for castling."""
    last = size - 1
    home = (own.king & row_of(size, last, (KING_COLUMN,))).any()
    castles = constant(())
    for side, (rook, between, passed, target) in enumerate(CASTLING):
        blocked = (position.occupied() & row_of(size, last, between)) | (threat.attacked & row_of(size, last, passed))
        may = rights[side] & home & (own.rooks & row_of(size, last, (rook,))).any() & ~blocked.any()
        castles |= row_of(size, last, (target,)).where(may & np.equal(WAYS, (WEST, EAST)[side]))
    return castles
