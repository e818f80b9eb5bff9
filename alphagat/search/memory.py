"""The memory of search trees, estimated before a search is compiled."""

import functools
import math
from typing import Any

import jax

from alphagat.errors import UserError
from alphagat.games.base import Game, StochasticGame
from alphagat.runtime.memory import device_memory
from alphagat.search.compact import is_compact, num_columns
from alphagat.wording import counted, sized

EDGE_BYTES, NODE_BYTES = 24, 20  # of mctx's tree, per action and per node, without the state
COLUMN_BYTES = 4  # of `CompactState`, per action


def check_trees(num_trees: int, num_simulations: int, bytes_per_tree: float) -> None:
    """Refuses trees that do not fit into the memory of a device.

    Raises:
      UserError: the message names the two sizes, the estimate and the limit.
    """
    limit = device_memory()
    if num_trees * bytes_per_tree > limit:
        raise UserError(
            f"{num_simulations:,} simulations for {counted(num_trees, 'game')} at once: the search trees need about "
            f"{sized(num_trees * bytes_per_tree)}, of {sized(limit)}; lower one of the two numbers"
        )


def tree_bytes(game: Game, num_simulations: int) -> float:
    """Returns the bytes of one game's tree in mctx."""
    edges = num_columns(game) + (game.num_chance_outcomes if isinstance(game, StochasticGame) else 0)
    return (num_simulations + 1) * (searched_state_bytes(game) + EDGE_BYTES * edges + NODE_BYTES)


def searched_state_bytes(game: Game) -> float:
    """Returns the bytes of a state in a tree: those of `CompactState` if the game has one."""
    return state_bytes(game) + (COLUMN_BYTES * num_columns(game) if is_compact(game) else 0)


@functools.lru_cache(maxsize=64)
def state_bytes(game: Game) -> float:
    """Returns the bytes of a state."""
    return num_bytes(jax.eval_shape(game.init, jax.random.key(0)))


def num_bytes(tree: Any) -> float:
    """Returns the bytes of all arrays of a pytree."""
    return float(sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree)))
