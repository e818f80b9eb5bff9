"""Connect Four in half an hour on two cores.

    python -m alphagat.main --config configs/connect_four.py --workdir runs/connect_four

Games start after 0 to 12 random moves: without, self-play narrows to a few openings and the network knows little of
the rest of the game.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(board="connect_four", num_iterations=260)
    config.network.width = 48
    config.search.num_simulations = 24
    config.selfplay.plies_per_iteration = 8
    config.selfplay.opening_plies = 12
    config.replay.capacity = 131_072
    config.learner.batch_size = 256
    config.learner.learning_rate = 5e-3  # at 1e-2 the value collapsed to a constant within the warm-up
    config.evaluation.every = 130
    config.evaluation.num_simulations = 64
    config.checkpoint.keep_every = 50
    return config
