"""Checks a game, such as one that you have written, by random play: `alphagat check kayles:8`."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from alphagat.bounds import Limits
from alphagat.cli import commands
from alphagat.errors import UserError
from alphagat.wording import counted

EXAMPLES = """\
examples:
  alphagat check hex:4
  alphagat check kayles:8 --games 100      # a game of an installed package"""
DESCRIPTION = "Ends with status 2 at the first rule that the game breaks. A small board takes seconds."


def make_parser() -> commands.ArgumentParser:
    parser = commands.ArgumentParser("check", DESCRIPTION, EXAMPLES)
    parser.add_argument("board", metavar="BOARD", help="the name of a board, such as hex:4")
    sizes = Limits(at_least=1, at_most=4096)
    commands.add_number(parser, "--games", int, sizes, default=32, metavar="N", help="random games to play")
    commands.add_seed(parser, help="random seed of the games")
    return parser


def check(argv: Sequence[str]) -> None:
    """Prints each rule that the game keeps. Raises UserError at the first one that it breaks."""
    options = make_parser().parse_args(list(argv))

    from alphagat.games import make_game
    from alphagat.games.contract import declarations, random_games, rules
    from alphagat.runtime import sharding

    sharding.configure_cpu_devices(1)
    game = make_game(options.board)
    for declaration in declarations.DECLARATIONS:
        _say_kept(declaration, _guarded(game, declaration, game))
    counts = (
        (game.topology.num_nodes, "node"),
        (game.num_features, "feature"),
        (game.topology.num_edges, "edge"),
        (game.num_actions, "action"),
    )
    sys.stdout.write(f"{game.name}: {', '.join(counted(number, noun) for number, noun in counts)}\n")
    games = _guarded(game, random_games.play, game, options.games, options.seed)
    lengths = [games.length(number) for number in range(games.number)]
    sys.stdout.write(f"{counted(games.number, 'random game')} of {min(lengths)} to {max(lengths)} plies\n")
    for rule in rules.RULES:
        _say_kept(rule, _guarded(game, rule, games))


def _guarded(game: Any, function: Callable, *arguments: Any) -> Any:
    """Returns the result of the function. Raises UserError with one line for an error in the code of the game."""
    from alphagat.games.contract.faults import describe_fault

    try:
        return function(*arguments)
    except UserError:
        raise
    except Exception as error:
        raise UserError(describe_fault(game, error)) from error


def _say_kept(rule: Callable, note: str | None) -> None:
    """Prints that the game keeps a rule, whose name is the first line of its docstring."""
    name = (rule.__doc__ or "").partition("\n")[0].replace("`", "").rstrip(".")
    sys.stdout.write(f"ok  {name}{f' ({note})' if note else ''}\n")
    sys.stdout.flush()


def run(argv: Sequence[str]) -> int:
    """Checks with the arguments `argv` (without the program's name) and returns the exit status."""
    return commands.run(check, argv)
