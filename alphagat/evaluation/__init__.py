"""Evaluation: players, matches, ratings and exact values of small boards.

- A `Player` is a name, a pure `act(params, key, states) -> actions`, and parameters. `make_opponent` makes players
  without a network (random, MCTS, exact solver); `search_player` wraps a network search.
- `play_match` plays each opening (`distinct_openings`) twice with colours swapped, in one compiled program.
- An `Engine` plays one position at a time on the host: `engines` has GTP and UCI programs and perfect play.
  `hosted_arena` plays their matches, `match_parts` plays a match in parts, `game_files` writes and reads games.
- `ratings` fits Elo ratings by the Bradley-Terry model; `sprt` stops a match once it is decided.
- `solvers`, `hex_solver` and `connect_four_solver` compute exact values; `oracles` measures players against them.

Results are from the perspective of player A; values of positions and moves, from the perspective of the player to move.
"""
