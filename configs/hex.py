"""One network for Hex of any size, trained on 4x4, 5x5 and 7x7 on two CPU cores.

alphagat train hex

A third of the games on each board start after one random move, so that the network learns which first moves win.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("hex:4", "hex:5", "hex:7"), num_iterations=400)
    config.board_weights = (1.0, 4.0, 1.0)
    config.final_board_weights = (1.0, 4.0, 8.0)
    config.network.width = 48
    config.search.num_simulations = 24
    config.selfplay.plies_per_iteration = 8
    config.selfplay.opening_plies = 2
    config.learner.batch_size = 256
    config.learner.ema_decay = 0.99
    config.evaluation.every = 200
    config.evaluation.num_simulations = 64
    config.evaluation.opponents = ("random", "mcts:100")
    return config
