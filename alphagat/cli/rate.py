"""Rates the checkpoints of a run: `alphagat rate runs/c4 --anchors random,mcts:100,mcts:1000`."""

from collections.abc import Sequence
from pathlib import Path

from alphagat.bounds import MAX_ITERATIONS, Limits
from alphagat.cli import commands
from alphagat.cli.number_actions import Numbers
from alphagat.runtime import terminal
from alphagat.wording import counted

EXAMPLES = """\
Each checkpoint plays the next one and every anchor. The anchor random, or else the first anchor, is rated 0.
RUN/ratings.json keeps the matches, and the same command plays only the missing ones; RUN/ratings.svg is the curve.

examples:
  alphagat rate runs/c4
  alphagat rate runs/c4 --iterations 20,40,80 --anchors random,mcts:100,mcts:1000 --games 200"""


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser("rate", epilog=EXAMPLES)
    commands.add_run(parser, help="the folder of the run")
    parser.add_argument(
        "--iterations",
        action=Numbers,
        kind=int,
        limits=Limits(at_least=0, at_most=MAX_ITERATIONS),
        example="20,40",
        metavar="N,N,...",
        help="the checkpoints (default: all)",
    )
    anchors = "weakest first (default: %(default)s)"
    parser.add_argument("--anchors", type=str, default="random,mcts:100", help=anchors)  # "": no anchors
    commands.add_games(parser, default=100, help="per match, an even number")
    commands.add_simulations(parser, help="per move of a network (default: as in the run's evaluations)")
    parser.add_argument("--board", help="any board of the run's family (default: the run's first)")
    commands.add_seed(parser, help="random seed of openings and players")
    return parser


def rate(argv: Sequence[str]) -> None:
    """Plays and rates as `argv` describes, and prints the ratings."""
    options = make_parser().parse_args(list(argv))
    folder = Path(commands.required_run(options))
    commands.check_even("--games", options.games)
    with terminal.status(commands.STARTING):
        from alphagat.runtime import sharding  # JAX is imported only after the flags were checked

        sharding.configure_cpu_devices(0)
        from rich.console import Console

        from alphagat.contests.rate_run import CURVE_FILE, RATINGS_FILE, RatingSettings, rate_run
        from alphagat.monitoring import rating_curve
        from alphagat.runs.folder import fingerprint_of, read_config

    config = read_config(folder)
    simulations = options.simulations or config.evaluation.num_simulations
    board, value_scale = options.board or config.boards[0], config.evaluation.value_scale
    settings = RatingSettings(board, options.games, simulations, value_scale, options.seed, fingerprint_of(config))
    anchors = [word for word in options.anchors.split(",") if word]
    players = rate_run(folder, options.iterations, anchors, settings, Console(stderr=True))
    title = f"{settings.board}, {counted(simulations, 'simulation')}, {settings.games} games per match"
    console = Console()
    console.print(rating_curve.table(title, players))
    rating_curve.draw(folder / CURVE_FILE, {settings.board: players}, title)
    console.print(f"in {folder}: {RATINGS_FILE}, {CURVE_FILE}", markup=False, soft_wrap=True)


def run(argv: Sequence[str]) -> int:
    """Runs the command with `argv`, without the program's name, and returns the exit status."""
    return commands.run(rate, argv, interrupted="interrupted; the same command continues after the last match")
