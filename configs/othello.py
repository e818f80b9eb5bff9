"""Othello 6x6 and 8x8 with one network.

    alphagat train othello --config.mesh.data=1

Early iterations mostly train on 6x6, where games are short and cheap, late ones on 8x8. The longest game has 119 plies,
almost half of them passes, and the target buffer would have to hold all of them. Games are truncated after 66 plies,
which allows six passes on 8x8; then the player with more discs wins.

After 64 minutes on one core (seed 0, 1.02 M frames), alongside other work, it scored 98 % (95 % interval 95 to 99) in
200 games on 8x8 against a network that had trained for 154 k frames with attention in every block, and with 64
simulations 95 % (86 to 98), 35 % (22 to 50) and 21 % (12 to 34) in 40 games against GRhino at its levels 1, 3 and 4.
Further stages (docs/archive.md#stages-of-othello) raised the score at level 4 from 21 to 66 %; the network of the
package comes from `configs/othello_gpu.py`.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("othello:6", "othello:8"), num_iterations=1_000)
    config.board_weights = (3.0, 1.0)
    config.final_board_weights = (0.0, 1.0)
    config.network.width = 48
    config.network.ownership_head = True
    config.search.num_simulations = 16
    config.search.value_scale = 0.1  # as in the runs above
    config.selfplay.opening_plies = 12
    config.selfplay.plies_per_iteration = 8
    config.selfplay.max_plies = 66
    config.replay.capacity = 131_072
    config.learner.batch_size = 256
    config.learner.learning_rate = 0.01
    config.learner.ema_decay = 0.99
    config.evaluation.every = 500
    config.evaluation.num_simulations = 64
    config.evaluation.opponents = ("random", "mcts:100")
    config.checkpoint.keep_every = 100
    return config
