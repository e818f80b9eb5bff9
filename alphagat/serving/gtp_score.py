"""The result of a game as the Go Text Protocol writes it."""

import jax.numpy as jnp
import numpy as np

from alphagat.evaluation.live_game import LiveGame
from alphagat.games import go_rules
from alphagat.games.go import GoGame
from alphagat.games.othello import OthelloGame


def score(game: LiveGame) -> str | None:
    """Returns e.g. `B+3.5`, `W+` where nothing is counted, or `0`; None while a game without points goes on.

    Go is counted as the stones stand, with nothing removed; who lost by repeating a position lost without points.
    """
    lead = _lead(game)
    if game.is_over:
        outcome = game.outcome()
        if outcome == 0:
            return "0"
        counted = f"{abs(lead):g}" if lead is not None and np.sign(lead) == outcome else ""
        return ("B+" if outcome > 0 else "W+") + counted
    if lead is None:
        return None
    return "0" if lead == 0 else f"{'B' if lead > 0 else 'W'}+{abs(lead):g}"


def _lead(game: LiveGame) -> float | None:
    """Returns the points of player 0 less those of player 1; None where there are none."""
    board, state = game.game, game.position.state
    if isinstance(board, GoGame):
        return int(go_rules.area_lead(state.chains, jnp.bool_(True))) - board.komi
    if isinstance(board, OthelloGame):
        first, second = (sum(int(row).bit_count() for row in discs) for discs in state.discs)
        return first - second
    return None
