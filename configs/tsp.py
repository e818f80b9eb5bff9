"""The travelling salesman problem with 20 cities in half an hour on one core.

    alphagat train tsp --config.mesh.data=1
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("tsp:20",), num_iterations=400)
    config.network.width = 64
    config.network.num_blocks = 4
    config.search.num_simulations = 16
    config.search.value_scale = 5.0  # good and bad moves differ in value by a few hundredths
    config.selfplay.num_games = 128
    config.selfplay.plies_per_iteration = 19
    config.learner.batch_size = 256
    config.learner.learning_rate = 0.01
    config.evaluation.every = 100
    config.evaluation.num_games = 200
    config.evaluation.num_simulations = 16
    config.evaluation.value_scale = 5.0
    config.evaluation.opponents = ("random",)
    return config
