"""The graph of chess boards: squares are nodes, and edges follow the moves of queens and knights.

Squares are numbered row by row from the top, from the perspective of the player to move, whose pawns move up. An action
is an edge from the square of a piece to its target. A pawn that reaches the last row becomes a queen, unless the kind
of the action is an underpromotion.
"""

import functools
from typing import NamedTuple

import numpy as np

from alphagat.games import chess_moves
from alphagat.games.rays import displacements, ray_names, ray_relations
from alphagat.graphs.topology import RelationVocabulary, Topology, topology_from_matrix

NUM_DISTANCES = 4  # all of them occur on 5 x 5 squares
KINDS = ("move", "promote to rook", "promote to bishop", "promote to knight")
VOCABULARY = RelationVocabulary(
    family="chess",
    version=1,
    relations=(
        "self",
        *ray_names(NUM_DISTANCES),
        *(f"knight at ({down:+d},{right:+d})" for down, right in chess_moves.JUMPS),
    ),
    node_kinds=("square",),
    action_kinds=KINDS,
)


class Actions(NamedTuple):
    """All geometrically possible moves; `[A]` int32 each.

    Attributes:
      senders: the square of the piece.
      receivers: its target square.
      kinds: index into `KINDS`.
      places: index into the `[(N + 1) * 8 * N * N]` flags of `chess_moves`' planes.
    """

    senders: np.ndarray
    receivers: np.ndarray
    kinds: np.ndarray
    places: np.ndarray


@functools.cache
def make_actions(size: int) -> Actions:
    """Lists all actions; there are 1858 on 8 x 8 squares."""
    steps = chess_moves.STEPS
    planes = [
        (8 * (far - 1) + way, 0, down * far, right * far)
        for way, (down, right) in enumerate(steps)
        for far in range(1, size)
    ]
    planes += [(8 * (size - 1) + way, 0, *jump) for way, jump in enumerate(chess_moves.JUMPS)]
    planes += [(8 * size + way, kind, *steps[way]) for kind in range(1, len(KINDS)) for way in chess_moves.PROMOTIONS]
    rows, columns = np.divmod(np.arange(size * size), size)
    table = []
    for plane, kind, down, right in planes:
        row, column = rows - down, columns - right  # of the sender, by receiver
        inside = (row >= 0) & (row < size) & (column >= 0) & (column < size) & ((kind == 0) | (rows == 0))
        receivers = np.flatnonzero(inside)
        senders = (row * size + column)[receivers]
        table.append(np.stack([senders, receivers, np.full_like(senders, kind), plane * size**2 + receivers]))
    return Actions(*np.concatenate(table, axis=1).astype(np.int32))


def make_topology(size: int) -> Topology:
    """Builds the squares, with an edge for every possible move of a queen or a knight."""
    down, right = displacements(size, size)
    matrix = ray_relations(size, size, NUM_DISTANCES)
    matrix = np.where(matrix >= 0, matrix + 1, -1)
    for jump in chess_moves.JUMPS:
        matrix[(down == jump[0]) & (right == jump[1])] = VOCABULARY.index(f"knight at ({jump[0]:+d},{jump[1]:+d})")
    np.fill_diagonal(matrix, VOCABULARY.index("self"))
    actions = make_actions(size)
    places = (actions.senders, actions.receivers)
    return topology_from_matrix(VOCABULARY, matrix, np.zeros(size * size), places, (size, size), actions.kinds)
