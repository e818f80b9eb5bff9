"""One network for Hex of any size, trained on 4x4, 5x5, 7x7 and 9x9.

    alphagat train hex

A third of the games on each board start after one random move, so that the network learns which first moves win.

With five features per node, seed 0 trained on 1.54 M frames for 120 minutes on one core. With 64 simulations it
scored 50 % (95 % interval 47 to 54) in 200 games on 7x7 and 47 % (40 to 55) in 100 on 9x9 against the network that
comes with the package, which an H100 trained with 5.4 M frames and the older defaults:

    alphagat match runs/hex shipped --board hex:7 --games 200 --simulations 64

With nine features, 900 iterations (0.92 M frames, 79 minutes on one core alongside other work) scored 45 % (39 to 51)
of 100 games on 7x7 and 28 % (18 to 40) of 40 on 9x9.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("hex:4", "hex:5", "hex:7", "hex:9"), num_iterations=1_500)
    config.board_weights = (1.0, 4.0, 3.0, 1.0)
    config.final_board_weights = (0.5, 1.0, 8.0, 2.0)
    config.network.width = 48
    config.search.num_simulations = 24
    config.selfplay.plies_per_iteration = 8
    config.selfplay.opening_plies = 2
    config.replay.capacity = 131_072
    config.learner.batch_size = 256
    config.learner.learning_rate = 0.01
    config.learner.value_weight = 0.3
    config.learner.ema_decay = 0.99
    config.evaluation.every = 750
    config.evaluation.num_simulations = 64
    config.evaluation.opponents = ("random", "mcts:100")
    config.checkpoint.keep_every = 250
    return config
