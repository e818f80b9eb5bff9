"""How a check of the contract fails: one line that names the board and the fault."""

from typing import Any

import numpy as np

from alphagat.errors import UserError
from alphagat.games.base import Game


def require(game: Game, holds: Any, problem: str) -> None:
    """Raises UserError with the name of the board unless the condition holds."""
    if not holds:
        raise UserError(f"board {game.name}: {problem}")


def expect(game: Game, what: str, array: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Raises UserError unless an array has this shape and type."""
    found, wanted = (
        f"{np.dtype(kind).name}{list(size)}" for kind, size in ((array.dtype, array.shape), (dtype, shape))
    )
    require(game, found == wanted, f"{what}: {found} instead of {wanted}")
