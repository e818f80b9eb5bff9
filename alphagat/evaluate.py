"""Plays a checkpoint against an opponent: `python -m alphagat.evaluate --workdir DIR --opponent mcts:100 --games
200`.
"""

import sys
from collections.abc import Sequence

from alphagat import commands

EXAMPLES = """\
examples:
  python -m alphagat.evaluate --workdir runs/quickstart --opponent mcts:100 --games 200
  python -m alphagat.evaluate --workdir runs/quickstart --opponent mcts:1000 --simulations 128 --iteration 40"""


def evaluate(argv: Sequence[str]) -> None:
    """Plays the match that `argv` describes and prints its result."""
    parser = commands.ArgumentParser(
        prog="python -m alphagat.evaluate",
        description="Plays a checkpoint of a run against an opponent, each opening with both colours.",
        epilog=EXAMPLES,
    )
    parser.add_argument("--workdir", required=True, metavar="FOLDER", help="the folder of the run")
    parser.add_argument("--board", help="any of the family of the run's boards (default: the run's first)")
    parser.add_argument("--opponent", default="mcts:100", help="random, mcts:N or solver (default: %(default)s)")
    parser.add_argument("--games", type=int, default=200, help="an even number (default: %(default)s)")
    parser.add_argument("--simulations", type=int, help="of the player (default: as in the run's own evaluations)")
    parser.add_argument("--iteration", type=int, help="which checkpoint (default: the latest)")
    parser.add_argument("--seed", type=int, default=0, help="of openings and opponent (default: %(default)s)")
    options = parser.parse_args(list(argv))
    commands.check_match(games=options.games, seed=options.seed, simulations=options.simulations)
    sys.stdout.write(_play(options) + "\n")


def _play(options) -> str:
    from alphagat.runtime import sharding  # JAX is imported only after the flags were found right

    sharding.configure_cpu_devices(0)
    import jax

    from alphagat.agents.agent import load
    from alphagat.evaluation.arena import play_match
    from alphagat.evaluation.openings import distinct_openings
    from alphagat.evaluation.players import make_opponent
    from alphagat.evaluation.single_player import play_alone

    agent = load(options.workdir, options.iteration, options.board)
    player = agent.player(options.simulations)
    opponent = make_opponent(agent.game, options.opponent)
    key, mesh = jax.random.key(options.seed), sharding.make_mesh(0)
    if agent.game.num_players == 1:
        ours, theirs = (play_alone(agent.game, each, options.games, key, mesh) for each in (player, opponent))
        (low, high), (low_theirs, high_theirs) = ours.interval, theirs.interval
        return (
            f"{agent.game.name}, {player.name}: mean score {ours.mean:,.0f} (95% interval {low:,.0f} to {high:,.0f}); "
            f"{opponent.name}: {theirs.mean:,.0f} ({low_theirs:,.0f} to {high_theirs:,.0f}); "
            f"{ours.mean / theirs.mean:.1f} times, {options.games} games each"
        )
    openings = distinct_openings(agent.game, options.games // 2, options.seed)
    result = play_match(agent.game, player, opponent, openings, key, mesh)
    low, high = result.interval
    first, second = result.score_by_colour
    return (
        f"{agent.game.name}, {player.name} against {opponent.name}: score {result.score:.1%} "
        f"(95% interval {low:.1%} to {high:.1%}; moving first {first:.1%}, second {second:.1%}), "
        f"{result.wins} won, {result.draws} drawn, {result.losses} lost of {result.num_games} games"
    )


def run(argv: Sequence[str]) -> int:
    """Evaluates as `argv` (without the program's name) says and returns the exit status."""
    return commands.run(evaluate, argv, interrupted="interrupted")


if __name__ == "__main__":
    commands.end(run(sys.argv[1:]))
