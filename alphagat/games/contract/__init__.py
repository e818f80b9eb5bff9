"""The contract of games, checked by random play: `alphagat check BOARD`.

`rules.check_shapes` checks what is needed to play at all. `random_games.play` then records games, and each function in
`rules.RULES` checks one rule on that record.
"""
