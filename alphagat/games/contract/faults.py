"""Errors in the code of a game, as one line."""

import traceback
from pathlib import Path

import alphagat
from alphagat.games.base import Game

HINTS = {
    "Tracer": "init, step and observe are compiled: use jnp.where instead of if, and jnp instead of np",
    "Concretization": "init, step and observe are compiled: use jnp.where instead of if, and jnp instead of np",
}


def describe_fault(game: Game, error: Exception) -> str:
    """Returns the error, the last line of code outside of installed packages that led to it, and a hint."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_of_the_game(frame.filename)]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}: " if frames else ""
    kind = type(error).__name__
    hint = next((f"; {text}" for word, text in HINTS.items() if word in kind), "")
    reason = str(error).strip().partition("\n")[0] or "no message"
    return f"board {game.name}: {place}{kind}: {reason}{hint}"


def _is_of_the_game(file: str) -> bool:
    return "site-packages" not in file and not file.startswith((str(Path(alphagat.__file__).parent), "<"))
