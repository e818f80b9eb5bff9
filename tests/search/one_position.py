"""The search of `search.growing_search` with the interface of the other searches."""

from typing import Any

import chex
import jax

from alphagat.games.base import Game
from alphagat.search import Evaluator, Search, SearchOutput
from alphagat.search.growing_search import make_growing_search


def make_batched_growing_search(
    game: Game, evaluate: Evaluator, *, num_simulations: int, num_leaves: int, **options: float
) -> Search:
    """Returns a `Search` for batches of one position; `options` are those of `make_growing_search`."""
    growing = make_growing_search(game, evaluate, capacity=num_simulations, num_leaves=num_leaves, **options)

    def search(params: Any, key: jax.Array, states: Any, plies: jax.Array) -> SearchOutput:
        del key, plies
        chex.assert_shape(states.terminated, (1,))
        tree = growing.start(params, jax.tree.map(lambda x: x[0], states))
        return growing.read(growing.grow(params, tree, num_simulations, num_simulations))

    return search
