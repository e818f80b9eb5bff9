"""Gardner chess (5x5). Its weights can initialize a chess run (`--init_from`).

alphagat train gardner_chess
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("gardner_chess",), num_iterations=200)
    config.network.width = 48
    config.search.num_simulations = 16
    config.selfplay.opening_plies = 6
    config.selfplay.plies_per_iteration = 16
    config.selfplay.max_plies = 80  # a truncated game is a draw
    config.replay.capacity = 131_072
    config.learner.num_micro_batches = 4  # parts of a batch that fit into the cache of a core
    config.learner.batch_size = 256
    config.learner.ema_decay = 0.99
    config.evaluation.every = 100
    config.evaluation.num_simulations = 64
    config.evaluation.opponents = ("random", "mcts:100")
    return config
