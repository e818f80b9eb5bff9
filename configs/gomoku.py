"""Free-style gomoku on 9x9: five or more in a line win.

alphagat train gomoku
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("gomoku:9",), num_iterations=300)
    config.selfplay.opening_plies = 6
    config.selfplay.plies_per_iteration = 8
    config.replay.capacity = 131_072
    config.evaluation.every = 50
    return config
