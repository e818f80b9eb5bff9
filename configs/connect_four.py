"""Connect Four in half an hour on two cores.

    python -m alphagat.main --config configs/connect_four.py --workdir runs/connect_four

Games start after 0 to 12 random moves: without, self-play narrows to a few openings and the network knows little of
the rest of the game.

What it reached, seed 0, in 29 min 57 s with compilation and matches; minutes are of training. Of 2,000 positions after
12 to 34 uniformly random plies the share where the move is one that an exact solver calls best (fastest win or slowest
loss), of the network alone and with 64 simulations, and where the sign of the network's value is right (drawn
positions aside):

    iteration  frames  minutes | network  search  value
          100   102 k      7.7 |  0.778    0.918  0.820
          200   205 k     15.6 |  0.810    0.921  0.834
          300   307 k     23.6 |  0.813    0.917  0.838
          340   348 k     26.8 |  0.820    0.917  0.847

    python benchmarks/oracle.py --workdir runs/connect_four --iterations 100 200 300 340

At the end it scored 94 % (95 % interval 90 to 97) against plain MCTS with 100 rollouts, 200 games, 64 simulations.
Discount and average were not measured apart: without them an earlier run had 0.800 and 0.919 after 205 k frames.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("connect_four",), num_iterations=340)
    config.network.width = 48
    config.search.num_simulations = 24
    config.search.discount = 0.9
    config.selfplay.plies_per_iteration = 8
    config.selfplay.opening_plies = 24
    config.replay.capacity = 131_072
    config.learner.batch_size = 256
    config.learner.learning_rate = 5e-3  # at 1e-2 the value collapsed to a constant within the warm-up
    config.learner.average_decay = 0.99
    config.evaluation.every = 170
    config.evaluation.num_simulations = 64
    config.checkpoint.keep_every = 100
    return config
