"""Plays two players against each other: `alphagat match runs/a runs/b --games 200`."""

from collections.abc import Sequence

from alphagat.bounds import MAX_GAMES, MAX_PLIES, MAX_SIMULATIONS, MAX_SYMMETRIES, Limits
from alphagat.cli import commands
from alphagat.cli.number_actions import Numbers
from alphagat.errors import UserError
from alphagat.opponents import OPPONENTS
from alphagat.runtime import terminal

WITHOUT_NETWORK = "\n".join(f"  {each.usage:<18}{each.help}" for each in OPPONENTS)
PLAYERS = f"""\
A and B are each one of these:
  a run folder, one of its checkpoints (runs/1/checkpoints/40), or a file of alphagat export
  shipped           the network of the package that plays the board
  hex, chess, ...   a network of the package, by its name
{WITHOUT_NETWORK}
  gtp:COMMAND       a program that speaks GTP
  uci:COMMAND       a program that speaks UCI
  pgx:FILE          a baseline of Pgx, for its boards
In a game for one player, each plays alone and the mean scores are compared."""
EXAMPLES = """\
examples:
  alphagat match runs/c4 mcts:1000 --games 200
  alphagat match runs/c4/checkpoints/100 runs/c4/checkpoints/300 --simulations 64 --sprt 0,30
  alphagat match runs/c4 solver --opening_plies 2 --simulations 256 --out c4.sgf
  alphagat match runs/go --board go:9 \\
      'gtp:gnugo --mode gtp --chinese-rules --positional-superko --play-out-aftermath --capture-all-dead' --games 20
  alphagat match runs/chess uci:stockfish --engine_option 'Skill Level=0' --move_nodes 100"""


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser("match", epilog=f"{PLAYERS}\n\n{EXAMPLES}")
    parser.add_argument("a", metavar="A", help="the player whose score is reported; see below")
    parser.add_argument("b", metavar="B", help="the opponent")
    parser.add_argument("--board", help="e.g. hex:7 (default: the first board of the run)")
    commands.add_games(parser, default=None, help="an even number (default: 200, or all with --opening_plies)")
    plies = Limits(at_least=0, at_most=MAX_PLIES)
    help = "start from all distinct openings of N plies"
    commands.add_number(parser, "--opening_plies", int, plies, metavar="N", help=help)
    _add_players(parser)
    _add_course(parser)
    _add_engines(parser)
    commands.add_seed(parser, help="random seed of openings and players")
    return parser


def _add_players(parser: commands.ArgumentParser) -> None:
    _add_per_player(
        parser,
        "--simulations",
        MAX_SIMULATIONS,
        example="64,256",
        help="per move of trained players: N, or N,M for A and B (default: as in their runs)",
    )
    _add_per_player(
        parser,
        "--symmetries",
        MAX_SYMMETRIES,
        example="8,1",
        help="images of a position, under symmetries of the board, whose evaluations trained players average: N, or "
        "N,M for A and B (default: 1)",
    )


def _add_per_player(parser: commands.ArgumentParser, flag: str, most: int, *, example: str, help: str) -> None:
    """Adds a flag with a positive number for both players, or one for each; None if not given."""
    limits = Limits(at_least=1, at_most=most)
    parser.add_argument(flag, action=Numbers, kind=int, limits=limits, counts=(1, 2), example=example, help=help)


def _add_course(parser: commands.ArgumentParser) -> None:
    parser.add_argument(
        "--sprt",
        action=Numbers,
        kind=float,
        limits=Limits(at_least=-1000, at_most=1000),
        counts=(2,),
        example="0,30",
        metavar="ELO0,ELO1",
        help="stop once a sequential test decides between these Elo differences; if the first is negative: --sprt=-5,0",
    )
    parser.add_argument("--out", metavar="FILE", help="a new file for the games: SGF, or PGN for chess")
    help = "games in progress (default: 64 with --sprt; else 8 with an engine, all without)"
    commands.add_number(parser, "--games_at_once", int, Limits(at_least=2, at_most=MAX_GAMES), help=help)


def _add_engines(parser: commands.ArgumentParser) -> None:
    help = "seconds per move of an engine, rounded to whole seconds, at least 1, for GTP (default: 1)"
    commands.add_number(parser, "--move_seconds", float, Limits(above=0, at_most=3600), help=help)
    help = "search nodes per move of a UCI engine, instead of seconds"
    commands.add_number(parser, "--move_nodes", int, Limits(at_least=1, at_most=10**12), help=help)
    parser.add_argument(
        "--engine_option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of UCI engines; repeatable",
    )


def match(argv: Sequence[str]) -> None:
    """Plays the match that `argv` describes and prints its result."""
    options = make_parser().parse_args(list(argv))
    commands.check_even("--games", options.games)
    commands.check_even("--games_at_once", options.games_at_once)
    if options.sprt is not None and options.sprt[0] >= options.sprt[1]:
        raise UserError(f"--sprt {options.sprt[0]:g},{options.sprt[1]:g}: the smaller difference must come first")
    with terminal.status(commands.STARTING):
        from alphagat.runtime import sharding  # JAX is imported only after the flags were checked

        sharding.configure_cpu_devices(0)
        from alphagat.contests.match import play
        from alphagat.contests.match_options import MatchOptions

    play(MatchOptions(**vars(options)))


def run(argv: Sequence[str]) -> int:
    """Runs the command with `argv`, without the program's name, and returns the exit status."""
    lost = "the games of the current part (--games_at_once) are lost; --out has those of earlier parts, if any"
    return commands.run(match, argv, interrupted=f"interrupted; {lost}")
