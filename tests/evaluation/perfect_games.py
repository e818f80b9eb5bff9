"""Records of games that an exact table plays, made by the rules on the host alone."""

import functools

import jax
import numpy as np

from alphagat.evaluation.game_files import GameRecord
from alphagat.evaluation.solvers import SolvedPositions, position_code, reachable_positions
from alphagat.games import make_game
from alphagat.games.batches import compile_init, compile_step, take

BOARD = "tic_tac_toe"


@functools.cache
def solved() -> tuple[SolvedPositions, np.ndarray]:
    """Returns the solved positions of the board, and their codes."""
    positions = reachable_positions(make_game(BOARD))
    return positions, np.asarray(position_code(make_game(BOARD), positions.states))


def rows_of(states) -> np.ndarray:
    """Returns the rows of positions among the solved ones."""
    codes = solved()[1]
    order = np.argsort(codes)
    return order[np.searchsorted(codes, np.asarray(position_code(make_game(BOARD), states)), sorter=order)]


def perfect_games(number: int, random_plies: int, seed: int = 0) -> list[GameRecord]:
    """Plays games of perfect moves after so many random ones."""
    game, generator, records = make_game(BOARD), np.random.default_rng(seed), []
    step, (positions, _) = compile_step(game), solved()
    for _ in range(number):
        states, moves = jax.device_get(compile_init(game)(jax.random.key(0)[None])), []
        while not states.terminated[0]:
            (row,) = rows_of(states)
            values = positions.action_values[row]
            good = states.legal_action_mask[0] if len(moves) < random_plies else values == values.max()
            action = generator.choice(np.flatnonzero(good & states.legal_action_mask[0]))
            moves.append(game.action_name(take(states, 0), int(action)))
            states = jax.device_get(step(states, np.array([action], np.int32), jax.random.key(0)[None]))
        players = tuple(ply % 2 for ply in range(len(moves)))
        records.append(GameRecord(BOARD, ("A", "B"), tuple(moves), players, int(states.rewards[0, 0])))
    return records
