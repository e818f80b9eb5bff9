"""Breakthrough 6x6 and 8x8 with one network.

alphagat train breakthrough_sizes

Every action is an edge from the origin of a move to its destination. Early iterations train on both boards, late ones
on 8x8. The longest games would fill the target buffer, so games are truncated after 100 plies, as draws; between
trained players they are much shorter.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("breakthrough:6", "breakthrough:8"), num_iterations=500)
    config.board_weights = (2.0, 1.0)
    config.final_board_weights = (0.0, 1.0)
    config.network.width = 48
    config.search.num_simulations = 16
    config.selfplay.opening_plies = 6
    config.selfplay.plies_per_iteration = 8
    config.selfplay.max_plies = 100
    config.replay.capacity = 131_072
    config.learner.num_micro_batches = 4  # parts of a batch that fit into the cache of a core
    config.learner.batch_size = 256
    config.learner.ema_decay = 0.99
    config.evaluation.every = 250
    config.evaluation.num_simulations = 64
    config.evaluation.opponents = ("random", "mcts:100")
    return config
