"""Evaluation: players, matches, ratings and exact values of small boards.

- A `Player` is a name, a pure `act(params, key, states) -> actions`, and parameters. `make_opponent` makes players
  without a network (random, MCTS, exact solver); `search_player` wraps a network search.
- `play_match` plays each opening (`distinct_openings`) twice with colours swapped, in one compiled program.
- An `Engine` plays one position at a time on the host: `engines` has GTP and UCI programs and perfect play.
  `hosted_arena` plays their matches, `match_parts` plays a match in parts, `game_files` writes and reads games.
- `ratings` fits Elo ratings by the Bradley-Terry model; `sprt` stops a match once it is decided.
- `solvers`, `hex_solver` and `connect_four_solver` compute exact values; `oracles` measures players against them.

Results are from the view of player A; values of positions and moves, from the view of the player to move.
"""

from alphagat.evaluation.arena import play_match
from alphagat.evaluation.match_result import MatchResult
from alphagat.evaluation.openings import distinct_openings, random_positions
from alphagat.evaluation.players import Player, make_opponent, search_player
from alphagat.evaluation.statistics import elo_difference, paired_interval, wilson_interval

__all__ = [
    "MatchResult",
    "Player",
    "distinct_openings",
    "elo_difference",
    "make_opponent",
    "paired_interval",
    "play_match",
    "random_positions",
    "search_player",
    "wilson_interval",
]
