"""Hex 5x5 in under one minute on two cores: a smoke test of the whole loop, also used by tests and scripts.

    alphagat train smoke

It learns a little and is not meant to play well.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("hex:5",), num_iterations=6)
    config.network.width = 16
    config.network.num_blocks = 2
    config.search.num_simulations = 8
    config.selfplay.num_games = 32
    config.selfplay.plies_per_iteration = 12
    config.replay.capacity = 4096
    config.replay.min_size = 256
    config.learner.batch_size = 128
    config.learner.replay_ratio = 2.0
    config.evaluation.every = 6
    config.evaluation.num_games = 40
    config.evaluation.num_simulations = 8
    config.evaluation.opponents = ("random", "previous")
    config.checkpoint.every = 2
    return config
