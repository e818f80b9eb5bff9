"""Perfect play in Connect Four as an engine."""

import jax
import numpy as np

from alphagat.errors import UserError
from alphagat.evaluation.connect_four import connect_four_scores
from alphagat.evaluation.positions import Engine, Position
from alphagat.games.base import Game


class SolverEngine(Engine):
    """Plays any of the best moves, the fastest win or the slowest loss, each as likely as the other.

    The package `bitbully` brings a book of all positions after 12 plies. On one core of an AMD EPYC a move took 10 ms
    on average and 80 ms at most before 12 plies; 0.13 s and 0.4 s after 12, where the book ends; less and less from
    there on (12 random positions for each number of plies). Reading the book takes a second, once.
    """

    name = "solver"

    def __init__(self, game: Game, seed: int):
        """Raises UserError: the board is not Connect Four, or `bitbully` is not installed."""
        if game.name != "connect_four":
            raise UserError(f"board {game.name}: this solver plays connect_four only")
        self._random = np.random.default_rng(seed)
        connect_four_scores(_batch_of_one(game.init(jax.random.key(0))))

    def choose(self, position: Position) -> int:
        scores = connect_four_scores(_batch_of_one(position.state))[0]
        return int(self._random.choice(np.flatnonzero(scores == scores.max())))


def _batch_of_one(state):
    return jax.tree.map(lambda x: np.asarray(x)[None], state)
