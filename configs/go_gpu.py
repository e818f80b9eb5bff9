"""Go 9x9 in six minutes on one GPU, from the network of the package.

    alphagat train go_gpu

Seed 0 ran on an NVIDIA H200 and was stopped at iteration 344 after 5.64 M frames, five minutes after 43 seconds of
compilation. It started from an earlier network of the package, against which it scored 98 % (95 % interval 93 to 99)
of 100 games with 64 simulations. Against GNU Go at level 10 it scored 82 % (76 to 87) of 200 games. It is weak on
5x5, which it did not train on. The network of the package comes from it by further stages (alphagat/weights/go.md).
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("go:9",), init_from="go", num_iterations=380)
    config.network.num_blocks = 8
    config.network.ownership_head = True
    config.network.precision = "bfloat16"
    config.selfplay.num_games = 2048
    config.selfplay.opening_plies = 6
    config.selfplay.plies_per_iteration = 8
    config.selfplay.max_plies = 120
    config.selfplay.audit_every = 5
    config.replay.capacity = 1 << 19
    config.replay.min_size = 1 << 16
    config.learner.batch_size = 2048
    config.learner.learning_rate = 0.006
    config.learner.warmup_steps = 300
    config.learner.ema_decay = 0.995
    config.evaluation.every = 0
    config.checkpoint.every = 95
    config.checkpoint.keep_every = 95
    return config
