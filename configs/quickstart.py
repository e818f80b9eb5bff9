"""Hex 5x5 in a few minutes on two cores.

    alphagat train quickstart

Self-play starts after 0 to 4 random moves, because matches do, too. Six evaluations of 50 games per opponent use 16
simulations, so that early networks lose games and the Elo curve can rise. The trained network scored 93.5, 92.0 and
90.5 % (seeds 0, 1 and 2) in 200 games with 128:

    alphagat evaluate runs/quickstart --opponent mcts:1000 --games 200 --simulations 128

The discount makes the player look for quick wins and slow losses. Against an opponent that errs, this saves games that
are lost: with a discount of 1, seeds 0 to 2 won 76 to 78 % of the games that they moved second in, with 0.9, 82 to
88 %.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("hex:5",), num_iterations=120)
    config.network.width = 48
    config.search.num_simulations = 16
    config.search.discount = 0.9
    config.selfplay.plies_per_iteration = 8
    config.selfplay.opening_plies = 4
    config.learner.batch_size = 256
    config.learner.value_weight = 0.1  # the value overfits first
    config.evaluation.every = 20
    config.evaluation.num_games = 50
    config.evaluation.num_simulations = 16
    config.evaluation.opponents = ("random", "mcts:100", "mcts:1000")
    return config
