"""Othello 6x6 and 8x8 with one network; two thirds of the iterations go to 8x8 in the end.

python -m alphagat.main --config configs/othello.py --workdir runs/othello
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("othello:6", "othello:8"), num_iterations=400)
    config.final_board_weights = (1.0, 2.0)
    config.selfplay.opening_plies = 6
    config.selfplay.plies_per_iteration = 8
    config.replay.capacity = 131_072
    config.evaluation.every = 100
    return config
