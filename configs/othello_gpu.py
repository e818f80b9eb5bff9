"""Othello 6x6 and 8x8 with one network, in less than four minutes on one GPU.

    alphagat train othello_gpu

Seed 0 ran on an NVIDIA H200 and was stopped at iteration 222 of 280, after 73 seconds of compilation, two minutes of
training and 3.64 M frames. A second stage from it (alphagat/weights/othello.md) comes with the package. On 8x8, with 64
simulations, the first scores 84 % (95 % interval 76 to 90) of 100 games against the best player of `configs/othello.py`
and its further stages. Against GRhino it scores 86 % (74 to 93) and 76 % (61 to 87) of 40 games at level 4, and 65 %
(49 to 78) of 20 at level 5, the highest.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("othello:6", "othello:8"), num_iterations=280)
    config.board_weights = (1.0, 1.0)
    config.final_board_weights = (0.1, 1.0)
    config.network.num_blocks = 6
    config.network.ownership_head = True
    config.network.precision = "bfloat16"
    config.selfplay.num_games = 2048
    config.selfplay.opening_plies = 12
    config.selfplay.plies_per_iteration = 8
    config.selfplay.max_plies = 66
    config.selfplay.audit_every = 20
    config.replay.capacity = 1 << 19
    config.replay.min_size = 1 << 16
    config.learner.batch_size = 2048
    config.learner.warmup_steps = 300
    config.learner.ema_decay = 0.995
    config.evaluation.every = 0
    config.checkpoint.every = 70
    config.checkpoint.keep_every = 70
    return config
