"""Errors in the code of a game, as one line."""

import traceback
from pathlib import Path

from alphagat.errors import first_line
from alphagat.games.base import Game

PACKAGE = Path(__file__).parents[2]
HINT = "init, step and observe are compiled: use jnp.where instead of if, and jnp instead of np"
OF_TRACING = "Tracer", "Concretization"  # in the names of JAX's errors


def describe_fault(game: Game, error: Exception) -> str:
    """Returns the error, the last line of code outside of installed packages that led to it, and a hint."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_of_the_game(frame.filename)]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}: " if frames else ""
    kind = type(error).__name__
    hint = f"; {HINT}" if any(word in kind for word in OF_TRACING) else ""
    return f"board {game.name}: {place}{kind}: {first_line(error) or 'no message'}{hint}"


def _is_of_the_game(file: str) -> bool:
    return "site-packages" not in file and not file.startswith((str(PACKAGE), "<"))
