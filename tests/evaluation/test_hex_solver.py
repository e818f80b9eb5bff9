"""Exact play of Hex against negamax, other solvers' results, and the theorems there are."""

import functools
import re

import jax
import numpy as np
import pyspiel
import pytest

from alphagat.errors import UserError
from alphagat.evaluation.hex_solver import HexSolver, _combine
from alphagat.evaluation.openings import random_positions
from alphagat.evaluation.solvers import ILLEGAL, Solver, reachable_positions, solve, stone_owners
from alphagat.games import make_game
from alphagat.games.batches import count, take

# The first moves that win (W).
FIRST_MOVES = {
    2: (".W", "W."),
    3: ("..W", "WWW", "W.."),
    4: ("...W", "..W.", ".W..", "W..."),
    5: ("....W", ".WWWW", ".WWW.", "WWWW.", "W...."),
}


@pytest.fixture(scope="module")
def solvers():
    """Solvers of 2x2 to 5x5 that have solved all first moves, and those moves."""
    made = {size: HexSolver(size) for size in FIRST_MOVES}
    return {size: (solver, [-solver.value((1 << cell, 0)) for cell in range(size**2)]) for size, solver in made.items()}


@pytest.mark.parametrize("size", FIRST_MOVES)
def test_winning_first_moves_match_published_solutions(solvers, size):
    solver, values = solvers[size]
    rows = np.where(np.reshape(values, (size, size)) == 1, "W", ".")
    assert tuple("".join(row) for row in rows) == FIRST_MOVES[size]
    assert solver.value((0, 0)) == 1  # Nash: a second player who won could have his strategy stolen
    assert values == values[::-1]  # a half turn changes nothing


@pytest.mark.parametrize(
    ("size", "first", "second", "winning"),
    [  # puzzles of Hein, Berge and Henderson, as the solvers of Benzene (MoHex and Wolve) answer them in its tests
        (4, "d1 a4", "c2", None),
        (4, "a1", "d1", None),
        (5, "a1 b4 c4 d3 e2", "b2 b5 c3 c5 e1", None),
        (5, "c1 c3 e1", "b1 c2 d2", "b3"),
        (5, "e1 c3 a4", "c2 b4", "c4"),
        (5, "e1 c3 a4", "c2 d2 b4", "b3"),
    ],
)
def test_published_puzzles(solvers, size, first, second, winning):
    """The player to move wins; only by one move where that is named."""
    solver, _ = solvers[size]
    names = make_game(f"hex:{size}").action_names
    position = tuple(sum(1 << names.index(name) for name in stones.split()) for stones in (first, second))
    assert solver.value(position) == 1
    if winning:
        moves = [cell for cell in range(size**2) if not (position[0] | position[1]) >> cell & 1]
        assert [names[move] for move in moves if solver.value(after(position, move)) == -1] == [winning]


def after(position, move):
    player = (position[0] | position[1]).bit_count() % 2
    return tuple(stones | (1 << move if owner == player else 0) for owner, stones in enumerate(position))


def test_all_positions_of_3x3_agree_with_negamax(solvers):
    solved = reachable_positions(make_game("hex:3"))
    stones, bits = np.asarray(stone_owners(make_game("hex:3"), solved.states)), 1 << np.arange(9)
    positions = list(zip(((stones == 1) @ bits).tolist(), ((stones == 2) @ bits).tolist(), strict=True))
    for solver in (HexSolver(3), solvers[3][0]):
        assert [solver.value(position) for position in positions] == solved.values.tolist()


@pytest.mark.parametrize(("size", "num_empty", "num_positions"), [(4, 9, 400), (5, 10, 200)])
def test_random_positions_agree_with_negamax(size, num_empty, num_positions):
    game, fast = make_game(f"hex:{size}"), solve(f"hex:{size}")
    slow = Solver(game, size**2, fast.has_won)
    states = jax.device_get(random_positions(game, num_positions, size**2 - num_empty, size**2 - 3, seed=size))
    for row in range(count(states)):
        state = take(states, row)
        found = fast.action_values(state)
        assert found.tolist() == slow.action_values(state).tolist()
        assert ((found != ILLEGAL) == state.legal_action_mask).all()


@pytest.mark.parametrize(("size", "num_patterns"), [(3, 40), (4, 300), (5, 1000)])
def test_patterns_win_inside_their_area_alone(solvers, size, num_patterns):
    """Where the opponent has all that lies outside the area, the player still answers every move in it."""
    wins = make_brute_force(size)
    for player, patterns in enumerate(solvers[size][0]._patterns):
        table = patterns.table[:, : patterns.count].T.tolist()
        small = [(stones, area) for stones, area in table if (area & ~stones).bit_count() <= 8]
        assert len(small) >= num_patterns
        chosen = np.random.default_rng(size).choice(len(small), num_patterns, replace=False)
        assert all(wins(player, stones, area & ~stones) for stones, area in (small[i] for i in chosen))


def test_stone_common_to_all_areas_belongs_to_pattern():
    """Without it the opponent could play there, into all threats at once."""
    stones, areas = np.array([0b0001, 0b0001]), np.array([0b0111, 0b1011])
    assert _combine(stones, areas, empty=0b1100) == (0b0011, 0b1111)
    assert _combine(stones, np.array([0b0111, 0b1001]), empty=0b1100) == (0b0001, 0b1111)


def make_brute_force(size):
    has_won = solve(f"hex:{size}").has_won

    def cells(empty):
        return [1 << cell for cell in range(size**2) if empty >> cell & 1]

    @functools.cache
    def wins(player, own, empty):
        """Tells whether the player wins when the opponent is to move."""
        if has_won(player, own):
            return True
        replies = {move: cells(empty & ~move) for move in cells(empty)}
        return bool(replies) and all(
            any(wins(player, own | reply, empty & ~move & ~reply) for reply in replies[move]) for move in replies
        )

    return wins


@pytest.mark.parametrize(("size", "num_games"), [(4, 60), (5, 40)])
def test_winning_side_beats_random_play_in_open_spiel(solvers, size, num_games):
    solver, random, num_won = solvers[size][0], np.random.default_rng(0), [0, 0]
    for game in range(num_games):
        state, position = pyspiel.load_game(f"hex(board_size={size})").new_initial_state(), (0, 0)
        start, winner = game % size, None
        while not state.is_terminal():
            moves = random.permutation(state.legal_actions()).tolist()
            if winner is None and (position[0] | position[1]).bit_count() == start:
                winner = state.current_player() if solver.value(position) == 1 else 1 - state.current_player()
            if state.current_player() == winner:
                moves = [next(move for move in moves if wins_by(solver, position, move, state))]
            position = after(position, moves[0])
            state.apply_action(moves[0])
        assert state.returns()[winner] == 1
        num_won[winner] += 1
    assert min(num_won) > 5


def wins_by(solver, position, move, state):
    return state.child(move).is_terminal() or solver.value(after(position, move)) == -1


def test_unsupported_board_sizes_are_rejected():
    for board in ("hex:6", "hex:5:swap"):
        with pytest.raises(UserError, match=f"board {board}: there is no exact solver; use .* or hex:2 to hex:5"):
            solve(board)
    for board in ("hex:4", "hex:5"):
        message = f"board {board}: there is no exact solver by table; use tic_tac_toe, hex:2 or hex:3"
        with pytest.raises(UserError, match=re.escape(message)):
            reachable_positions(make_game(board))
