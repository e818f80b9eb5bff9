"""The cells of a rectangle: their relations, by direction and distance of a queen's move, and their symmetries."""

from collections.abc import Sequence

import numpy as np

from alphagat.games.symmetries import Symmetries

# (name, row step, column step)
DIRECTIONS = (
    ("n", -1, 0),
    ("ne", -1, 1),
    ("e", 0, 1),
    ("se", 1, 1),
    ("s", 1, 0),
    ("sw", 1, -1),
    ("w", 0, -1),
    ("nw", -1, -1),
)


def displacements(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rows down and the columns to the right from each receiver to each sender, `[V, V]` both."""
    row, column = np.divmod(np.arange(rows * columns), columns)
    return row[None, :] - row[:, None], column[None, :] - column[:, None]


def neighbour_table(size: int, steps: Sequence[tuple[int, int]], outside: int | np.ndarray) -> np.ndarray:
    """Returns `[N * N, S]` int32, the cell at each of the steps (down, right) from each cell of a square.

    Off the board it is `outside`, which may depend on the cell: `[N * N, 1]`.
    """
    row, column = np.divmod(np.arange(size * size)[:, None], size)
    down, right = np.transpose(steps)
    rows, columns = row + down, column + right
    inside = (rows >= 0) & (rows < size) & (columns >= 0) & (columns < size)
    return np.where(inside, rows * size + columns, outside).astype(np.int32)


def ray_names(num_distances: int) -> tuple[str, ...]:
    """Names the relations of `ray_relations`, e.g. `ne2`; the last distance includes all farther ones."""
    distances = [*(str(distance) for distance in range(1, num_distances)), f"{num_distances}+"]
    return tuple(f"{name}{distance}" for name, _, _ in DIRECTIONS for distance in distances)


def ray_relations(rows: int, columns: int, num_distances: int) -> np.ndarray:
    """Returns `[V, V]` int32 by (receiver, sender): the index into `ray_names`, or -1 if no queen's move connects them.

    The direction is from the receiver to the sender.
    """
    down, right = displacements(rows, columns)
    distance = np.maximum(abs(down), abs(right))
    bucket = np.minimum(distance, num_distances) - 1
    relations = np.full(distance.shape, -1, np.int32)
    for number, (_, row_step, column_step) in enumerate(DIRECTIONS):
        on_ray = (down == distance * row_step) & (right == distance * column_step) & (distance > 0)
        relations[on_ray] = number * num_distances + bucket[on_ray]
    return relations


def grid_symmetries(rows: int, columns: int) -> np.ndarray:
    """Returns `[S, V]` int32 permutations of the cells: the 8 symmetries of a square, or the 4 of another rectangle.

    The first four are the identity, the reflections left-right and up-down, and the half turn; a square adds the
    transposes of these.
    """
    grid = np.arange(rows * columns).reshape(rows, columns)
    grids = [grid, grid[:, ::-1], grid[::-1], grid[::-1, ::-1]]
    if rows == columns:
        grids += [turned.T for turned in grids]
    return np.stack([turned.ravel() for turned in grids]).astype(np.int32)


def symmetries_with_pass(size: int) -> Symmetries:
    """Lists the 8 symmetries of the cells of a square; nodes and actions are the cells and then the pass."""
    nodes = np.pad(grid_symmetries(size, size), ((0, 0), (0, 1)), constant_values=size * size)
    return Symmetries(nodes, nodes)
