"""One network for Hex 5x5 and 7x7, to be evaluated on unseen sizes.

    alphagat train hex_sizes
    alphagat evaluate runs/hex_sizes --board hex:9 --opponent mcts:100

Early iterations mostly train on 5x5, where games are short and cheap, late ones on 7x7.

After 123 k frames (3.8 minutes on one core, seed 0) it won all 100 games of Hex 9x9, an unseen size, with 64
simulations against MCTS with 1,000 rollouts. The untrained network lost all 100:

    python benchmarks/transfer.py --workdir runs/hex_sizes --board hex:9 --opponents mcts:1000 --games 100
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("hex:5", "hex:7"), num_iterations=120)
    config.board_weights = (3.0, 1.0)
    config.final_board_weights = (0.0, 1.0)
    config.network.width = 48
    config.search.num_simulations = 16
    config.selfplay.plies_per_iteration = 8
    config.selfplay.opening_plies = 4
    config.learner.batch_size = 256
    config.evaluation.every = 60
    config.evaluation.num_simulations = 64
    config.evaluation.opponents = ("random", "mcts:100")
    return config
