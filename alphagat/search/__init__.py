"""Search: `make_search(game, evaluator, ...)` gives `search(params, key, states, plies) -> SearchOutput`.

mctx does the search; this package says what a root, an edge and an evaluation are. Values and rewards are from the
view of the player to move; discount is -1 between alternating players, +1 for the same player, 0 at the end. Where
chance moves, `stochastic` gives the tree its nodes.
"""

from alphagat.search.evaluator import Evaluation, Evaluator, make_network_evaluator
from alphagat.search.policies import Search, make_search
from alphagat.search.tree import SearchOutput

__all__ = ["Evaluation", "Evaluator", "Search", "SearchOutput", "make_network_evaluator", "make_search"]
