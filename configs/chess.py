"""Chess 8x8 and Gardner chess (5x5) with one network, from games that engines play against themselves.

    alphagat pretrain chess --games games --config.mesh.data=1
    alphagat train chess --init_from runs/chess_pretrained                # continues with self-play (untested)

docs/results.md#chess-from-self-play-alone has a run without games of engines, which is weaker.

The card of the network (alphagat/weights/chess.md) names the games and a second, shorter stage with more games of
Gardner chess. After 65 minutes on one core (seed 0) it scored 88 % (95 % interval 83 to 91) of 200 games with 64
simulations, and 91 % (87 to 94) of 200 with 256, against Stockfish 15.1 with `UCI_Elo=1350` and 0.05 s per move; with
256 also 84 % (78 to 88) of 200 against `UCI_Elo=1700`, and 5 % (3 to 9) of 200 against 2000.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("chess", "gardner_chess"), num_iterations=600)
    config.board_weights = (7.0, 1.0)
    config.search.num_simulations = 32
    config.selfplay.opening_plies = 8
    config.selfplay.plies_per_iteration = 16
    config.selfplay.max_plies = 256  # a truncated game is a draw
    config.replay.capacity = 131_072
    config.learner.value_weight = 0.3
    config.learner.ema_decay = 0.99
    config.evaluation.every = 100
    config.evaluation.opponents = ("random",)
    config.checkpoint.keep_every = 100
    return config
