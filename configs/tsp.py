"""The travelling salesman problem with 20 cities in half an hour on one core.

    alphagat train tsp --config.mesh.data=1

Seed 0 trained for 27 minutes on one core, alongside other work (0.97 M frames). Over 200 instances its tours are 1.11 %
(95 % interval 0.90 to 1.31) longer than the shortest ones without search, 0.37 % (0.28 to 0.47) with 64 simulations per
move, and 0.13 % (0.08 to 0.17) with 256. Those of the nearest-neighbour heuristic are 18.3 % longer.

    python benchmarks/tsp.py runs/tsp --simulations 64 256
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("tsp:20",), num_iterations=400)
    config.search.num_simulations = 16
    config.search.value_scale = 5.0  # good and bad moves differ in value by a few hundredths
    config.selfplay.plies_per_iteration = 19
    config.learner.batch_size = 256
    config.learner.learning_rate = 0.01
    config.evaluation.every = 100
    config.evaluation.num_simulations = 16
    config.evaluation.value_scale = 5.0
    config.evaluation.opponents = ("random",)
    return config
