"""Connect Four in less than five minutes on one GPU.

    alphagat train connect_four_gpu

Seed 0 ran on an NVIDIA H200 and was stopped at iteration 232 of 260, after 36 seconds of compilation, three and a half
minutes of training and 3.80 M frames. The package has the mean of its player and of a second stage, which its card
describes (alphagat/weights/connect_four.md). Of 2,000 positions after 12 to 34 uniformly random plies, the first stage
finds the best move according to an exact solver in 96.4 % without search and in 98.5 % with 64 simulations; the sign of
its value is correct in 96.1 %. With 256 simulations, from the 49 two-ply openings, each with both colours, it won 29 of
98 games against perfect play, drew 22 and lost 47: 41 % (95 % interval 37 to 45).

Compared with `configs/connect_four.py`, games start after fewer random moves (0 to 16), because the larger number of
games also covers the first moves. It keeps checkpoints for rating afterwards, and plays no matches during training,
which saves compiling their programs.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("connect_four",), num_iterations=260)
    config.network.num_blocks = 6
    config.network.precision = "bfloat16"
    config.search.num_simulations = 96
    config.search.discount = 0.98
    config.selfplay.num_games = 2048
    config.selfplay.plies_per_iteration = 8
    config.selfplay.opening_plies = 16
    config.selfplay.audit_every = 20
    config.replay.capacity = 1 << 19
    config.replay.min_size = 1 << 16
    config.learner.batch_size = 2048
    config.learner.value_weight = 0.3
    config.learner.warmup_steps = 300
    config.learner.ema_decay = 0.995
    config.evaluation.every = 0
    config.checkpoint.every = 65
    config.checkpoint.keep_every = 65
    return config
