"""Gardner chess (5x5). Its weights can initialize a chess run (`--init_from`).

    alphagat train gardner_chess

docs/results.md measures how much a run on chess gains from them.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("gardner_chess",), num_iterations=400)
    config.selfplay.opening_plies = 6
    config.selfplay.plies_per_iteration = 16
    config.selfplay.max_plies = 80  # a truncated game is a draw
    config.replay.capacity = 131_072
    config.evaluation.every = 50
    config.evaluation.opponents = ("random", "previous")
    return config
