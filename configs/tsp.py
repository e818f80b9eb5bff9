"""The travelling salesman problem with 10, 20 and 50 cities in an hour and a half on one core.

    alphagat train tsp --config.mesh.data=1

Early iterations mostly train on 10 and 20 cities, where games are short and cheap, late ones on 20 and 50.

Seed 0 trained for 88 minutes on one core, alongside other work (1.56 M frames). Over 200 instances of 20 cities its
tours are 1.12 % (95 % interval 0.90 to 1.34) longer than the shortest ones without search, 0.66 % (0.50 to 0.82) with
16 simulations per move, 0.30 % (0.22 to 0.39) with 64, and 0.12 % (0.08 to 0.16) with 256; on 10 cities 0.41 % (0.29
to 0.54) without search and 0.03 % (0.01 to 0.05) with 64. Those of the nearest-neighbour heuristic are 18.3 and 10.3 %
longer. On 50 cities, 100 tours have a mean length of 5.88 without search and 5.80 with 64; nearest neighbour: 6.96.

    python benchmarks/tsp.py runs/tsp --board tsp:20 --simulations 16 64 256
    python benchmarks/tsp.py runs/tsp --board tsp:10 --simulations 16 64
    python benchmarks/tsp.py runs/tsp --board tsp:50 --instances 100 --simulations 64 --no-exact
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("tsp:10", "tsp:20", "tsp:50"), num_iterations=640)
    config.board_weights = (3.0, 4.0, 1.0)
    config.final_board_weights = (1.0, 3.0, 3.0)
    config.search.num_simulations = 16
    config.search.max_num_considered_actions = 4  # with 16, each gets one simulation, and search gains nothing
    config.search.value_scale = 5.0  # good and bad moves differ in value by a few hundredths
    config.selfplay.plies_per_iteration = 19
    config.learner.batch_size = 256
    config.learner.learning_rate = 0.01
    config.evaluation.every = 160
    config.evaluation.num_simulations = 16
    config.evaluation.value_scale = 5.0
    config.evaluation.opponents = ("random",)
    return config
