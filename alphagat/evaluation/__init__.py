"""Evaluation: players, matches between them, and exact values of small boards to hold them against.

- A `Player` is a name, a pure `act(params, key, states) -> actions`, and parameters. `make_opponent` makes those
  without a network (random, MCTS, exact solver); `search_player` makes one from a search over a network.
- `play_match` plays distinct openings (`distinct_openings`), each with both colours, in one compiled program.
- An `Engine` takes one position at a time, on the host: programs that speak GTP or UCI (`gtp`, `uci`), perfect play
  (`perfect`). `hosted_arena` plays their matches, `series` plays any match in parts, `records` writes its games.
- `ratings` puts players on one Elo scale by Bradley and Terry's model; `sprt` tells when a match is decided.
- `solvers`, `hex_solver` and `connect_four` know the exact value of moves, and `oracles` how often a player errs.

Results are from the view of player A; values of positions and moves, from the view of the player to move.
"""

from alphagat.evaluation.arena import play_match
from alphagat.evaluation.match_result import MatchResult
from alphagat.evaluation.openings import distinct_openings, random_positions
from alphagat.evaluation.players import Player, make_opponent, search_player
from alphagat.evaluation.statistics import elo_difference, wilson_interval

__all__ = [
    "MatchResult",
    "Player",
    "distinct_openings",
    "elo_difference",
    "make_opponent",
    "play_match",
    "random_positions",
    "search_player",
    "wilson_interval",
]
