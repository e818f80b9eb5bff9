"""Breakthrough 6x6 and 8x8 with one network, which comes with the package.

    alphagat train breakthrough_sizes

Early iterations mostly train on 6x6, where games are short and cheap, late ones on 8x8. The longest games would fill
the target buffer, so games are truncated after 100 plies, as draws.

Seed 0 trained for 44 minutes on one core (1.02 M frames), alongside other work. With 64 simulations it scored 95 %
(95 % interval 84 to 99) in 40 games of 8x8 against Fairy-Stockfish with 1,000 nodes per move, and won all 40
games (91 to 100) against MCTS with 10,000 rollouts.

    alphagat match shipped uci:fairy-stockfish --board breakthrough:8 --games 40 --simulations 64 --move_nodes 1000
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("breakthrough:6", "breakthrough:8"), num_iterations=1_000)
    config.board_weights = (2.0, 1.0)
    config.final_board_weights = (0.0, 1.0)
    config.network.width = 48
    config.search.num_simulations = 16
    config.search.value_scale = 0.1  # as in the runs above
    config.selfplay.opening_plies = 6
    config.selfplay.plies_per_iteration = 8
    config.selfplay.max_plies = 100
    config.replay.capacity = 131_072
    config.learner.batch_size = 256
    config.learner.learning_rate = 0.005  # at 0.02 the value learns late
    config.learner.ema_decay = 0.99
    config.evaluation.every = 500
    config.evaluation.num_simulations = 64
    config.evaluation.opponents = ("random", "mcts:100")
    config.checkpoint.keep_every = 100
    return config
