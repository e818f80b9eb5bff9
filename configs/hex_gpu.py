"""One network for Hex of any size, trained on 4x4, 5x5, 7x7 and 9x9 on one H100.

    alphagat train hex_gpu

The network of the package is the checkpoint of iteration 165 of a run of five minutes. Nodes had five features then;
today they have nine, so this config gives a different network. The card (alphagat/weights/hex.md) lists the other
differences.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("hex:4", "hex:5", "hex:7", "hex:9"), num_iterations=220)
    config.board_weights = (2.0, 4.0, 3.0, 1.0)
    config.final_board_weights = (1.0, 2.0, 6.0, 3.0)
    config.network.num_blocks = 6
    config.network.precision = "bfloat16"
    config.network.blocks, config.network.num_heads = ("attention",), 4  # as in the shipped network
    config.search.value_scale = 0.1  # likewise
    config.selfplay.num_games = 4096
    config.selfplay.plies_per_iteration = 8
    config.selfplay.opening_plies = 4
    config.selfplay.audit_every = 5
    config.replay.capacity = 1 << 19
    config.replay.min_size = 1 << 16
    config.learner.batch_size = 2048
    config.learner.optimizer = "lamb"
    config.learner.learning_rate = 6e-3
    config.learner.warmup_steps = 300
    config.learner.ema_decay = 0.995
    config.evaluation.every = 0
    config.checkpoint.every = 55
    config.checkpoint.keep_every = 55
    return config
