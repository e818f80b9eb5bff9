"""2048 in an hour on one core: a player that comes with the package.

    alphagat train 2048

Seed 0 trained for 55 minutes on one core, alongside other work (4.1 M frames). Over 200 games with 16 simulations it
scores 30,494 on average (95 % interval 28,656 to 32,331), 28.5 times the score of random play, and reaches the tile
2048 in 77.0 % of them:

    alphagat match runs/2048 random --board 2048 --games 200 --simulations 16

A separate run of 80 iterations (`--config.num_iterations=80`, 2.8 minutes on two cores) scored 14,750 (13,814 to
15,687).
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("2048",), num_iterations=1_000)
    config.network.width = 64
    config.network.num_blocks = 3
    config.search.num_simulations = 16
    config.search.value_scale = 0.1  # as in the run above
    # Games last hundreds of plies, so value targets bootstrap from the search's value after 32 plies.
    config.selfplay.horizon = 32
    config.selfplay.num_games = 256
    config.selfplay.plies_per_iteration = 16
    config.learner.batch_size = 1024
    config.learner.replay_ratio = 2.0
    config.learner.value_weight = 0.25  # a cross-entropy over many returns is larger than a squared error
    config.evaluation.every = 500
    config.evaluation.num_simulations = 16
    config.evaluation.value_scale = 0.1  # the scale of self-play, with which the score above was measured
    config.evaluation.opponents = ("random",)
    config.checkpoint.keep_every = 100
    return config
