"""Perfect play as an engine, for Connect Four and for Hex boards too large for a table."""

import numpy as np

from alphagat.errors import UserError
from alphagat.evaluation.engines.base import Engine
from alphagat.evaluation.live_game import Position
from alphagat.evaluation.oracles import CONNECT_FOUR, make_scorer
from alphagat.games.base import Game
from alphagat.games.batches import batch_of_one
from alphagat.games.states import first_state

SOLVER_BOARDS = ("connect_four", "hex:4", "hex:5")


class SolverEngine(Engine):
    """Plays a uniformly random best move.

    In Connect Four, the best moves are the fastest wins or the slowest losses. The package `bitbully` has a book of all
    positions with 12 plies. On one core of an AMD EPYC, the mean and the maximum time of a move were 10 ms and 80 ms
    before ply 12, and 0.13 s and 0.4 s at ply 12; later moves were faster (12 random positions per ply). Loading the
    book takes a second.

    In Hex, every winning move counts as best; in a lost position, every move does. On the same core, the first move on
    an empty 5x5 board takes a second and later moves milliseconds; all engines of a board share the patterns of their
    solver.
    """

    name = "solver"

    def __init__(self, game: Game, seed: int):
        """Raises UserError if the board is not in `SOLVER_BOARDS`, or `bitbully` is required but not installed."""
        if game.name not in SOLVER_BOARDS:
            raise UserError(f"board {game.name}: this solver plays {', '.join(SOLVER_BOARDS)} only")
        self._random = np.random.default_rng(seed)
        self._score = make_scorer(game)
        if game.name == CONNECT_FOUR:
            self._score(batch_of_one(first_state(game)))  # loads the book

    def choose(self, position: Position) -> int:
        scores = self._score(batch_of_one(position.state))[0]
        return int(self._random.choice(np.flatnonzero(scores == scores.max())))
