"""Othello 6x6 and 8x8 with one network, which comes with the package.

python -m alphagat.main --config configs/othello.py --workdir runs/othello

Most iterations go to 6x6 at first, where games are short and cheap, and to 8x8 in the end. The longest game has 119
plies, almost half of them passes, and every position would wait that long for its target: games are cut after 66, which
six passes do not reach, and then whoever has more discs wins.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("othello:6", "othello:8"), num_iterations=150)
    config.board_weights = (3.0, 1.0)
    config.final_board_weights = (0.0, 1.0)
    config.network.width = 48
    config.network.ownership_head = True
    config.search.num_simulations = 16
    config.selfplay.opening_plies = 12
    config.selfplay.plies_per_iteration = 8
    config.selfplay.max_plies = 66
    config.learner.batch_size = 256
    config.learner.ema_decay = 0.99
    config.evaluation.every = 75
    config.evaluation.num_simulations = 64
    config.evaluation.opponents = ("random", "mcts:100")
    return config
