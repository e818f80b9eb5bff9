"""Free-style gomoku on 9x9: five or more in a line win. The network comes with the package.

    alphagat train gomoku

Seed 0 trained for 26 minutes on one core (461 k frames), alongside other work. Its first 36 iterations had the
learning rates of a run of 800. With 64 simulations it won all 100 games (95 % interval 96 to 100) against MCTS with
1,000 rollouts, and all 40 (91 to 100) with 10,000.

    alphagat match shipped mcts:10000 --board gomoku:9 --games 40 --simulations 64
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("gomoku:9",), num_iterations=450)
    config.network.width = 48
    config.search.num_simulations = 16
    config.search.value_scale = 0.1  # as in the run above
    config.selfplay.opening_plies = 12
    config.selfplay.plies_per_iteration = 8
    config.replay.capacity = 131_072
    config.learner.batch_size = 256
    config.learner.learning_rate = 0.01
    config.learner.ema_decay = 0.99
    config.evaluation.every = 225
    config.evaluation.num_simulations = 64
    config.evaluation.opponents = ("random", "mcts:1000")
    config.checkpoint.keep_every = 100
    return config
