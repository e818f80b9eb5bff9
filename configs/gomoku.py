"""Free-style gomoku on 9x9: five or more in a line win.

alphagat train gomoku
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("gomoku:9",), num_iterations=400)
    config.network.width = 48
    config.search.num_simulations = 16
    config.selfplay.opening_plies = 12
    config.selfplay.plies_per_iteration = 8
    config.replay.capacity = 131_072
    config.learner.num_micro_batches = 4  # parts of a batch that fit into the cache of a core
    config.learner.batch_size = 256
    config.learner.learning_rate = 0.01
    config.learner.ema_decay = 0.99
    config.evaluation.every = 200
    config.evaluation.num_simulations = 64
    config.evaluation.opponents = ("random", "mcts:1000")
    config.checkpoint.keep_every = 100
    return config
