"""Tic-tac-toe in 20 seconds on two cores: a player that never loses.

    alphagat train tic_tac_toe

Games start after 0 to 6 random moves, so that self-play also visits positions that good play avoids. With seed 0 and 32
simulations it plays no losing move in any of the 3,888 reachable positions that are not lost, and without search it
finds a best move in all 2,000 random positions:

    python benchmarks/oracle.py --workdir runs/tic_tac_toe --simulations 32

The network of the package trained with `search.value_scale=0.1`, formerly the default, and plays as well.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("tic_tac_toe",), num_iterations=80)
    config.network.width = 32
    config.network.num_blocks = 3
    config.search.num_simulations = 16
    config.selfplay.plies_per_iteration = 8
    config.selfplay.opening_plies = 6
    config.replay.capacity = 32_768
    config.learner.batch_size = 256
    config.learner.value_weight = 0.1
    config.evaluation.every = 40
    config.evaluation.opponents = ("random", "solver", "mcts:100")
    return config
