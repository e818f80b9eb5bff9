"""Comparison of players with perfect play, by stage of the game."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from alphagat.evaluation.connect_four_solver import connect_four_scores
from alphagat.evaluation.openings import random_positions
from alphagat.evaluation.players import Act, Player, act_in_batches, search_player
from alphagat.evaluation.solvers import reachable_positions, solve, stone_owners
from alphagat.games.base import Game
from alphagat.games.batches import chunks, count, take
from alphagat.search import Evaluator, Search
from alphagat.search.tree import likeliest_action

STAGES = ("early", "middle", "late")  # thirds of the range of plies
CONNECT_FOUR = "connect_four"
CONNECT_FOUR_PLIES = 12, 34  # earlier positions take long to solve, later ones leave few moves
ILLEGAL_SCORE = -(2**30)
CHUNK = 512  # positions at once


@dataclasses.dataclass(frozen=True, eq=False)
class Oracle:
    """Positions from uniformly random play, with exact scores.

    Attributes:
      states: `[N]`, non-terminal.
      scores: `[N, A]` int32, the score of each move for the player to move. Its sign is the exact value; the best
        moves have the highest score. `ILLEGAL_SCORE` for illegal moves.
      stages: `[N]` int32, the index in `STAGES`.
    """

    states: Any
    scores: np.ndarray
    stages: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """`[N]` exact values, -1, 0 or 1, for the player to move."""
        return np.sign(self.scores.max(axis=1))

    def shares(self, right: np.ndarray, of: np.ndarray | bool = True) -> dict[str, float]:
        """Returns the share of `right` `[N]` among the positions `of` `[N]`: overall, and per non-empty stage."""
        among = np.broadcast_to(of, right.shape)
        subsets = {"": among} | {f"_{name}": among & (self.stages == i) for i, name in enumerate(STAGES)}
        return {name: float(right[rows].mean()) for name, rows in subsets.items() if rows.any()}


@functools.lru_cache(maxsize=8)
def make_oracle(game: Game, num_positions: int, seed: int) -> Oracle:
    """Draws random positions and solves them.

    Plies are uniform between 2/7 and 6/7 of the longest game. In Connect Four, they are uniform from 12 to 34, and
    solving a position takes about 20 ms.

    Raises:
      UserError: the board has no exact solver.
    """
    make_scorer(game)  # raises before the expensive work
    longest = game.max_plies
    low, high = CONNECT_FOUR_PLIES if game.name == CONNECT_FOUR else (2 * longest // 7, 6 * longest // 7)
    states = jax.device_get(random_positions(game, num_positions, low, high, seed))
    plies = (np.asarray(stone_owners(game, states)) != 0).sum(axis=1)
    stages = (plies - low) * len(STAGES) // (high - low + 1)
    return Oracle(states, score_positions(game, states), stages)


def score_positions(game: Game, states: Any) -> np.ndarray:
    """Returns the scores `[N, A]` of `[N]` positions, as in `Oracle.scores`.

    Raises:
      UserError: the board has no exact solver.
    """
    states = jax.device_get(states)
    scores = make_scorer(game)(states).astype(np.int32)
    return np.where(states.legal_action_mask, scores, ILLEGAL_SCORE)


def make_scorer(game: Game) -> Callable[[Any], np.ndarray]:
    """Returns a function from `[N]` states with numpy leaves to `[N, A]` exact scores; higher is better.

    Raises:
      UserError: the board has no exact solver.
    """
    if game.name == CONNECT_FOUR:
        return connect_four_scores
    solver = solve(game.name)
    return lambda states: np.stack([solver.action_values(take(states, row)) for row in range(count(states))])


def count_losing_moves(game: Game, player: Player, key: jax.Array) -> tuple[int, int]:
    """Counts the reachable positions that are not lost, and those of them in which the player's move loses.

    Raises:
      UserError: the board has no solver.
    """
    solved = reachable_positions(game)
    (rows,) = np.nonzero(solved.values >= 0)
    actions = act_in_batches(player, key, solved.states, rows, CHUNK)
    return len(rows), int((solved.action_values[rows, actions] < 0).sum())


class OracleTest:
    """Compares a network, with and without search, with the scores of an oracle."""

    def __init__(self, oracle: Oracle, evaluate: Evaluator, search: Search):
        self._oracle = oracle
        self._ask = jax.jit(functools.partial(_ask, evaluate, search_player("search", search, None).act))

    def measure(self, params: Any, key: jax.Array) -> dict[str, float]:
        """Returns shares in [0, 1] over all positions and, with the suffixes `_early`, `_middle`, `_late`, by stage.

        `best_move`: the network's most probable move is a best move. `keeps_result`: it keeps the exact value, though a
        win may take longer; in a lost position every move does. `best_move_search`, `keeps_result_search`: the same for
        the search's move. `value_sign`: among decided positions, the sign of the network's value names the winner.
        """
        oracle, rows = self._oracle, np.arange(len(self._oracle.scores))
        raw, searched, values = (np.concatenate(parts) for parts in zip(*self._answers(params, key)))
        shares = {"value_sign": oracle.shares(np.sign(values) == oracle.values, oracle.values != 0)}
        for player, moves in (("", raw), ("_search", searched)):
            scores = oracle.scores[rows, moves]
            shares[f"best_move{player}"] = oracle.shares(scores == oracle.scores.max(axis=1))
            shares[f"keeps_result{player}"] = oracle.shares(np.sign(scores) == oracle.values)
        return {name + stage: share for name, stages in shares.items() for stage, share in stages.items()}

    def _answers(self, params: Any, key: jax.Array) -> Iterator[list[np.ndarray]]:
        """Yields what `_ask` returns for each chunk of the positions."""
        num_positions = len(self._oracle.scores)
        for rows, padded in chunks(num_positions, min(num_positions, CHUNK)):
            chunk_key = jax.random.fold_in(key, rows[0]) if rows[0] else key
            answers = self._ask(params, chunk_key, take(self._oracle.states, padded))
            yield [np.asarray(answer)[: len(rows)] for answer in answers]


def _ask(evaluate: Evaluator, act: Act, params: Any, key: jax.Array, states: Any) -> tuple:
    """Returns `[N]` the moves of the network and of the search, and the network's values."""
    evaluation = evaluate(params, states)
    raw = likeliest_action(evaluation.prior_logits, states)
    return raw, act(params, key, states), evaluation.value
