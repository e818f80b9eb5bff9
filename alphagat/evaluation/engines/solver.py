"""Perfect play as an engine, in Connect Four and on the boards of Hex that are too large for a table."""

import jax
import numpy as np

from alphagat.errors import UserError
from alphagat.evaluation.engines.base import Engine, Position
from alphagat.evaluation.oracles import CONNECT_FOUR, make_scorer
from alphagat.games.base import Game
from alphagat.games.states import first_state

SOLVER_BOARDS = ("connect_four", "hex:4", "hex:5")


class SolverEngine(Engine):
    """Plays any of the best moves, each as likely as the other.

    In Connect Four these are the fastest wins or the slowest losses. The package `bitbully` brings a book of all
    positions after 12 plies. On one core of an AMD EPYC a move took 10 ms on average and 80 ms at most before 12 plies;
    0.13 s and 0.4 s after 12, where the book ends; less and less from there on (12 random positions for each number of
    plies). Reading the book takes a second, once.

    In Hex these are all winning moves, or all moves of a lost position. On the same core the first move on an empty
    5x5 board takes a second, and later ones some milliseconds: all engines of a board share what they have learned.
    """

    name = "solver"

    def __init__(self, game: Game, seed: int):
        """Raises UserError: the board is not one of `SOLVER_BOARDS`, or `bitbully` is needed and not installed."""
        if game.name not in SOLVER_BOARDS:
            raise UserError(f"board {game.name}: this solver plays {', '.join(SOLVER_BOARDS)} only")
        self._random = np.random.default_rng(seed)
        self._score = make_scorer(game)
        if game.name == CONNECT_FOUR:
            self._score(_batch_of_one(first_state(game)))  # reads the book

    def choose(self, position: Position) -> int:
        scores = self._score(_batch_of_one(position.state))[0]
        return int(self._random.choice(np.flatnonzero(scores == scores.max())))


def _batch_of_one(state):
    return jax.tree.map(lambda x: np.asarray(x)[None], state)
