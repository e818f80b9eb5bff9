"""Breakthrough 6x6. Every action is an edge from the origin of a move to its destination.

    alphagat train breakthrough

The longest game has 85 plies, and the target buffer would have to hold all of them. Games are truncated after 56 plies,
as draws. None of 2,000 random games was longer, and games between trained players average 17 to 28 plies.

With seed 10, a run of four minutes on one core (86 iterations) wins all 100 games with 16 simulations against MCTS
with 1,000 rollouts. docs/results.md compares it with a ResNet.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("breakthrough:6",), num_iterations=300)
    config.search.value_scale = 0.1  # as in the run above
    config.selfplay.opening_plies = 6
    config.selfplay.plies_per_iteration = 8
    config.selfplay.max_plies = 56
    config.replay.capacity = 131_072
    config.learner.learning_rate = 0.005  # at 0.02 the value learns late
    config.evaluation.every = 50
    return config
