"""Go 5x5 and 7x7 with one network.

alphagat train go_small

Early iterations train on both boards, late ones on 7x7. Games between weak players never end by two passes, so they
are truncated after 80 plies and scored as they are.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("go:5", "go:7"), num_iterations=500)
    config.board_weights = (2.0, 1.0)
    config.final_board_weights = (0.0, 1.0)
    config.network.width = 48
    config.network.ownership_head = True
    config.search.num_simulations = 16
    config.selfplay.opening_plies = 6
    config.selfplay.plies_per_iteration = 8
    config.selfplay.max_plies = 80
    config.replay.capacity = 131_072
    config.learner.num_micro_batches = 4  # parts of a batch that fit into the cache of a core
    config.learner.batch_size = 256
    config.learner.ema_decay = 0.99
    config.evaluation.every = 250
    config.evaluation.num_simulations = 64
    config.evaluation.opponents = ("random", "mcts:100")
    return config
