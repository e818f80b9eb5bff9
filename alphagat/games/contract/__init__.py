"""The contract of games, checked by random play: `alphagat check BOARD`.

Each function in `declarations.DECLARATIONS` checks one rule on the game itself. `random_games.play` then records games,
and each function in `rules.RULES` checks one rule on that record.
"""
