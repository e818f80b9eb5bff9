"""Go 5x5, 7x7 and 9x9 with one network. The package's network was trained further from this player.

    alphagat train go

Early iterations mostly train on 5x5, where games are short and cheap, late ones on 9x9. Random play never ends, so
games are truncated after 120 plies and scored as they are.

Seed 0 trained for about 48 minutes on one core, alongside other work (1.02 M frames). With 64 simulations it scored
84 % (95 % interval 76 to 90) of 100 games on 9x9 and 73 % (65 to 80) of 100 on 5x5 against a network that had trained
with `search.value_scale=0.1` for 614 k frames. On 9x9 it won 14 of 60 games against GNU Go at level 10.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("go:5", "go:7", "go:9"), num_iterations=1_000)
    config.board_weights = (4.0, 2.0, 1.0)
    config.final_board_weights = (0.0, 1.0, 4.0)
    config.network.width = 48
    config.network.ownership_head = True
    config.search.num_simulations = 16
    config.selfplay.opening_plies = 6
    config.selfplay.plies_per_iteration = 8
    config.selfplay.max_plies = 120
    config.replay.capacity = 131_072
    config.learner.batch_size = 256
    config.learner.learning_rate = 0.01
    config.learner.ema_decay = 0.99
    config.evaluation.every = 500
    config.evaluation.num_simulations = 64
    config.evaluation.opponents = ("random", "mcts:100")
    config.checkpoint.keep_every = 100
    return config
