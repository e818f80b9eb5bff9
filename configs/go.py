"""Go 9x9 for a GPU; `--config.boards=go:5` fits a laptop.

alphagat train go
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("go:9",), num_iterations=2_000)
    config.network.width = 128
    config.network.num_blocks = 6
    config.search.num_simulations = 32
    config.selfplay.num_games = 512
    config.selfplay.opening_plies = 8
    config.selfplay.plies_per_iteration = 16
    config.selfplay.max_plies = 120  # random play never ends; a truncated game is scored as it is
    config.replay.capacity = 262_144
    config.replay.min_size = 16_384
    config.learner.batch_size = 1024
    config.evaluation.every = 100
    config.evaluation.opponents = ("random", "previous")
    return config
