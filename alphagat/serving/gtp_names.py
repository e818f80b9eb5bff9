"""Boards of a family by their size, and how their moves are called in the Go Text Protocol."""

import re

from alphagat.errors import UserError
from alphagat.evaluation.engines.gtp import SWAPS
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.games.go import GoGame
from alphagat.games.hex import HexGame


def resize(game: Game, size: int) -> str:
    """Returns the name of the board of another size. Raises UserError where the family has none of that size."""
    words = game.name.split(":")
    if len(words) > 1 and words[1].isdigit():
        name = ":".join((words[0], str(size), *words[2:]))
    elif size in game.topology.grid_shape:
        name = game.name
    else:
        raise UserError(f"board {game.name} has one size")
    return make_game(name).name


def with_komi(game: GoGame, komi: float) -> str:
    """Returns the name of the board with another komi. Raises UserError where it cannot be."""
    return make_game(f"go:{game.size}:{komi:g}").name


def vertex(game: Game, name: str) -> str:
    """Returns what a controller calls a move of ours: Go in capitals, a swap as Hex programs do."""
    if isinstance(game, HexGame) and name == "swap":
        return "swap-pieces"
    return name.upper() if isinstance(game, GoGame) and name != "pass" else name


def move_name(game: Game, vertex: str) -> str:
    """Returns what we call a move of a controller's."""
    return "swap" if isinstance(game, HexGame) and vertex.lower() in SWAPS else vertex.lower()


def has_names(game: Game) -> bool:
    """Whether moves can be told by one word each."""
    return all(re.fullmatch(r"\S+", name) for name in game.action_names)
