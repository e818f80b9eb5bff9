"""Go 5x5, 7x7 and 9x9 with one network, which comes with the package.

    alphagat train go

Early iterations mostly train on 5x5, where games are short and cheap, late ones on 9x9. Random play never ends, so
games are truncated after 120 plies and scored as they are.

Seed 0 trained for 29 minutes on one core, beside other work (614 k frames). With 64 simulations on 9x9 it won all of 40
games (95 % interval 91 to 100) against MCTS with 100 rollouts, and 1 of 20 against GNU Go at level 1; on 5x5 it won 39
of 40 against MCTS with 1,000 rollouts.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("go:5", "go:7", "go:9"), num_iterations=600)
    config.board_weights = (4.0, 2.0, 1.0)
    config.final_board_weights = (0.0, 1.0, 4.0)
    config.network.width = 48
    config.network.ownership_head = True
    config.search.num_simulations = 16
    config.selfplay.opening_plies = 6
    config.selfplay.plies_per_iteration = 8
    config.selfplay.max_plies = 120
    config.replay.capacity = 131_072
    config.learner.num_micro_batches = 4  # parts of a batch that fit into the cache of a core
    config.learner.batch_size = 256
    config.learner.learning_rate = 0.01
    config.learner.ema_decay = 0.99
    config.evaluation.every = 300
    config.evaluation.num_simulations = 64
    config.evaluation.opponents = ("random", "mcts:100")
    config.checkpoint.keep_every = 100
    return config
