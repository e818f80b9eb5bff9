"""Chess for a GPU, optionally from the weights of Gardner chess.

alphagat train chess --init_from runs/gardner_chess
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("chess",), num_iterations=5_000)
    config.search.num_simulations = 32
    config.selfplay.num_games = 512
    config.selfplay.opening_plies = 8
    config.selfplay.plies_per_iteration = 16
    config.selfplay.max_plies = 256  # a truncated game is a draw
    config.replay.capacity = 262_144
    config.replay.min_size = 32_768
    config.learner.batch_size = 2048
    config.evaluation.every = 100
    config.evaluation.opponents = ("random", "previous")
    return config
