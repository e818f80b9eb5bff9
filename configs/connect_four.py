"""Connect Four in less than an hour on two cores.

    alphagat train connect_four

Games start after 0 to 24 random moves. Without them, self-play narrows to a few openings and the network learns little
about other positions.

Results of seed 0 after 1,100 iterations: 1.13 M frames in 44 minutes of training on two cores, alongside other work. Of
2,000 positions after 12 to 34 uniformly random plies, it finds the best move according to an exact solver (fastest win
or slowest loss) in 95.8 % without search and in 97.7 % with 64 simulations; the sign of the network's value is correct
in 95.6 % (drawn positions excluded). With 256 simulations, from the 49 two-ply openings, each with both colours, it won
21 of 98 games against perfect play, drew 19 and lost 58.
With a learning rate of 0.01 instead of 0.02, seeds 0 and 1 find 96.1 and 95.9 % of the best moves, 97.8 and 97.9 % with
search, and score 33 and 29 instead of 31 % against perfect play (docs/experiments.md#tuning-of-gat-and-resnet).
With a discount of 0.95, too, and 1,500 iterations (35 minutes on two free cores), seeds 0, 1 and 2 find 96.4, 95.9 and
96.5 % of the best moves, and 98.6, 98.3 and 98.4 % with search, but are no stronger (docs/experiments.md#slow-wins).
Before nodes showed threats and heights (docs/experiments.md#what-nodes-show), a run reached 95.5, 97.6 and 94.0 %, and
another one, on one core, 94.9, 97.3 and 93.8 %; they scored 32 and 22 % of the 98 games.

    python benchmarks/oracle.py --workdir runs/connect_four
    alphagat match runs/connect_four solver --opening_plies 2 --simulations 256 --games_at_once 98

Reasons for the settings: in runs of four minutes with openings of up to 12 random plies, the network found the best
move in 80.9 % of the positions without search; with up to 24 plies, in 89.5 %. A discount of 0.9, which leaves a win
in 20 plies a value of 0.12, was no better than 0.98.
"""

from alphagat.config import Config


def get_config() -> Config:
    config = Config(boards=("connect_four",), num_iterations=1_100)
    config.network.width = 48
    config.search.num_simulations = 24
    config.search.value_scale = 0.1  # as in the runs above
    config.search.discount = 0.98
    config.selfplay.plies_per_iteration = 8
    config.selfplay.opening_plies = 24
    config.replay.capacity = 131_072
    config.learner.batch_size = 256
    config.learner.value_weight = 0.1  # the value overfits first
    config.learner.ema_decay = 0.99
    config.evaluation.every = 550
    config.evaluation.num_simulations = 64
    config.checkpoint.keep_every = 100
    return config
