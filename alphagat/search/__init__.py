"""Search: `make_search(game, evaluator, ...)` gives `search(params, key, states, plies) -> SearchOutput`.

mctx runs the search; this package defines roots, edges and evaluations. Values and rewards are for the player to
move. The discount is `search.discount` times -1 if the player changes, +1 if the same player moves again, and 0 at the
end. `stochastic` adds chance nodes, `backup` replaces mctx's backup with a faster one, `compact` gives trees one column
per legal action, and `growing_search` searches a single position without mctx.
"""

from alphagat.search.evaluator import Evaluation, Evaluator, make_network_evaluator
from alphagat.search.policies import make_search
from alphagat.search.tree import Search, SearchOutput

__all__ = ["Evaluation", "Evaluator", "Search", "SearchOutput", "make_network_evaluator", "make_search"]
