"""Breakthrough 6x6, where every action is an edge: from the square of a piece to the square that it moves to.

python -m alphagat.main --config configs/breakthrough.py --workdir runs/breakthrough

The longest game has 85 plies, and every position would wait that long for its target. Games are cut after 56, which is
a draw: none of 2,000 random games was longer, and players that have learned take 17 to 28 on average.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("breakthrough:6",), num_iterations=300)
    config.selfplay.opening_plies = 6
    config.selfplay.plies_per_iteration = 8
    config.selfplay.max_plies = 56
    config.replay.capacity = 131_072
    config.evaluation.every = 50
    return config
