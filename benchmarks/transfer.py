"""Evaluates a run on a board that it never saw, with its weights and with untrained ones.

    python benchmarks/transfer.py --workdir runs/hex_sizes --board hex:9 --opponents mcts:100 mcts:1000

Both players use the same search and the same openings, each with both colours.
"""

import argparse
import dataclasses

import jax

from alphagat.agents.agent import load
from alphagat.agents.build import make_configured_network, make_params
from alphagat.evaluation.arena import play_match
from alphagat.evaluation.openings import distinct_openings
from alphagat.evaluation.players import make_opponent
from alphagat.runtime import sharding


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workdir", required=True)
    parser.add_argument("--board", required=True, help="any of the family of the run's boards")
    parser.add_argument("--opponents", nargs="+", default=["random", "mcts:100"])
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sharding.configure_cpu_devices(0)
    trained = load(options.workdir, board=options.board)
    network = make_configured_network(trained.config, trained.game)
    fresh = make_params(trained.game, network, jax.random.key(options.seed))
    untrained = dataclasses.replace(trained, params=fresh, iteration=0)
    openings = distinct_openings(trained.game, options.games // 2, options.seed)
    for name in options.opponents:
        opponent = make_opponent(trained.game, name)
        for label, agent in (("untrained", untrained), (f"trained on {', '.join(trained.config.boards)}", trained)):
            player = agent.player(options.simulations)
            key = jax.random.key(options.seed)
            result = play_match(trained.game, player, opponent, openings, key, sharding.make_mesh(0))
            print(f"{options.board} against {name}: {label}: {result.score:.1%} ({result.interval_text})", flush=True)


if __name__ == "__main__":
    main()
