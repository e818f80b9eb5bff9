"""Hex 5x5 in a few minutes on two cores.

python -m alphagat.main --config configs/quickstart.py --workdir runs/quickstart
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("hex:5",), num_iterations=70)
    config.network.width = 48
    config.search.num_simulations = 16
    config.selfplay.plies_per_iteration = 8
    config.learner.batch_size = 256
    config.evaluation.every = 70
    config.evaluation.num_simulations = 64
    config.evaluation.opponents = ("random", "mcts:100", "mcts:1000")
    return config
