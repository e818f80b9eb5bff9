"""Chess 8x8 and Gardner chess (5x5) with one network, from games that engines play against themselves.

    alphagat pretrain chess --games games --config.num_iterations=120     # made the network of the package
    alphagat train chess --init_from runs/chess_pretrained                # goes on with self-play; not yet run

The card of the network (alphagat/weights/chess.md) names the games. After 10.4 minutes on one core, with 64
simulations, it scored 35 % (95 % interval 18 to 57) in 20 games against Stockfish 15.1 with
`UCI_Elo=1350` and 0.05 s per move.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("chess", "gardner_chess"), num_iterations=160)
    config.board_weights = (7.0, 1.0)
    config.search.num_simulations = 32
    config.selfplay.opening_plies = 8
    config.selfplay.plies_per_iteration = 16
    config.selfplay.max_plies = 256  # a truncated game is a draw
    config.replay.capacity = 131_072
    config.learner.num_micro_batches = 8  # parts of a batch that fit into the cache of a core
    config.learner.ema_decay = 0.99
    config.evaluation.every = 40
    config.evaluation.opponents = ("random",)
    return config
