"""Maps board sizes, komi, colours and move names between GTP and this package."""

import re

from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.games.go import COLUMNS, GoGame, name_of
from alphagat.games.hex import SWAPS, HexGame

BLACK_FIRST, WHITE_FIRST = ("black", "white"), ("white", "black")


def colours(game: Game) -> tuple[str, str]:
    """Returns the colours of player 0 and player 1: White moves first in chess, Black in all other games."""
    first, _ = game.player_colours[0]
    return WHITE_FIRST if first == "white" else BLACK_FIRST


def player_of(game: Game, colour: str) -> int | None:
    """Returns the player of a colour, e.g. `b` or `Black`; None if there is none."""
    word = colour.lower()
    return next((player for player, name in enumerate(colours(game)) if word in (name, name[0])), None)


def resize(game: Game, size: int) -> str:
    """Returns the name of the same game on another board size. Raises UserError if the game has no such size."""
    words = game.name.split(":")
    if len(words) > 1 and words[1].isdigit():
        name = ":".join((words[0], str(size), *words[2:]))
    elif size in game.topology.grid_shape:
        name = game.name
    else:
        raise UserError(f"board {game.name} has one size; leave it")
    return make_game(name).name


def with_komi(game: GoGame, komi: float) -> str:
    """Returns the name of the board with another komi. Raises UserError if the komi is invalid."""
    return make_game(name_of(game.size, komi)).name


def most_handicap(size: int) -> int:
    """Returns the largest fixed handicap of GTP 2 on a board; 0 for none."""
    if size < 7:
        return 0
    return 4 if size == 7 or size % 2 == 0 else 9


def handicap_points(size: int, number: int) -> list[str]:
    """Returns the action names of a fixed handicap of GTP 2, of 2 to `most_handicap` stones."""
    low = 3 if size < 13 else 4
    middle, high = (size + 1) // 2, size + 1 - low
    corners = [(low, low), (high, high), (low, high), (high, low)]
    points = [*corners, (low, middle), (high, middle), (middle, low), (middle, high)]
    in_middle = number > 4 and number % 2 == 1
    points = [*points[: number - in_middle], *[(middle, middle)] * in_middle]
    return [f"{COLUMNS[column - 1]}{row}" for column, row in points]


def vertex(game: Game, name: str) -> str:
    """Returns the GTP vertex of an action name: upper case for Go, `swap-pieces` for a swap in Hex."""
    if isinstance(game, HexGame) and name == "swap":
        return "swap-pieces"
    return name.upper() if isinstance(game, GoGame) and name != "pass" else name


def move_name(game: Game, vertex: str) -> str:
    """Returns the action name of a GTP vertex; the inverse of `vertex`."""
    return "swap" if isinstance(game, HexGame) and vertex.lower() in SWAPS else vertex.lower()


def has_names(game: Game) -> bool:
    """Returns whether every action name is a single word, as GTP requires."""
    return all(re.fullmatch(r"\S+", name) for name in game.action_names)
