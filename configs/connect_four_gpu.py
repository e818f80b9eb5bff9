"""Connect Four in ten minutes on one H100.

    alphagat train connect_four_gpu

Its player comes with the package. Compared with `configs/connect_four.py`, games start after fewer random moves (0 to
16), because the larger number of games also covers the first moves, and the discount is 0.95 instead of 0.98.
It keeps checkpoints for rating afterwards. It plays no matches during training, which saves compiling their programs.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("connect_four",), num_iterations=220)
    config.network.num_blocks = 6
    config.network.precision = "bfloat16"
    config.network.blocks, config.network.num_heads = ("attention",), 4  # as in the shipped network
    config.search.num_simulations = 48
    config.search.value_scale = 0.1  # likewise
    config.search.discount = 0.95
    config.selfplay.num_games = 4096
    config.selfplay.plies_per_iteration = 8
    config.selfplay.opening_plies = 16
    config.selfplay.audit_every = 5
    config.replay.capacity = 1 << 20
    config.replay.min_size = 1 << 16
    config.learner.batch_size = 2048
    config.learner.optimizer = "lamb"
    config.learner.learning_rate = 6e-3
    config.learner.warmup_steps = 300
    config.learner.ema_decay = 0.995
    config.evaluation.every = 0
    config.checkpoint.every = 44
    config.checkpoint.keep_every = 44
    return config
