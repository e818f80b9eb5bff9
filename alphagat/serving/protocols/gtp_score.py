"""Formats the result of a game for GTP."""

import jax.numpy as jnp
import numpy as np

from alphagat.evaluation.live_game import LiveGame
from alphagat.games import go_rules
from alphagat.games.base import Game
from alphagat.games.go import GoGame
from alphagat.serving.protocols.gtp_names import colours


def score(game: LiveGame) -> str | None:
    """Returns e.g. `B+3.5`, `W+` for a win without points, or `0` for a draw; None if no score exists yet.

    Go is scored by area with all stones alive. A loss by repetition has no points.
    """
    board, lead = game.game, _lead(game)
    if game.is_over:
        outcome = game.outcome()
        if outcome == 0:
            return "0"
        counted = f"{abs(lead):g}" if lead is not None and np.sign(lead) == outcome else ""
        return f"{_letter(board, outcome)}+{counted}"
    if lead is None:
        return None
    return "0" if lead == 0 else f"{_letter(board, lead)}+{abs(lead):g}"


def stones(game: LiveGame) -> list[str]:
    """Returns the names of the points of a Go board that hold stones."""
    assert isinstance(game.game, GoGame)
    return [game.game.action_names[point] for point in np.flatnonzero(game.position.state.chains)]


def _letter(board: Game, lead: float) -> str:
    return colours(board)[int(lead < 0)][0].upper()


def _lead(game: LiveGame) -> float | None:
    """Returns the points of player 0 minus those of player 1; None for games without points, and after a repetition."""
    board, state = game.game, game.position.state
    if isinstance(board, GoGame) and not game.is_over:
        return int(go_rules.area_lead(state.chains, jnp.bool_(True))) - board.komi
    counts = board.counts(state)
    return None if counts is None else counts[0] - counts[1]
