import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.evaluation.solvers import (
    ILLEGAL,
    make_solved_table,
    position_code,
    reachable_positions,
    solve,
    stone_owners,
)
from alphagat.games import make_game
from alphagat.games.batches import compile_step
from alphagat.games.states import first_state

KEY = jax.random.key(0)


def _host_positions(solver):
    """Lists the stones of all positions that are not over, by the solver's own rules."""
    found, front = set(), {(0, 0)}
    while front:
        found |= front
        following = set()
        for position in front:
            player = (position[0] | position[1]).bit_count() % 2
            for action in solver._empty_cells(position):
                after = tuple(stones | (1 << action if owner == player else 0) for owner, stones in enumerate(position))
                if not solver.has_won(player, after[player]) and solver._empty_cells(after):
                    following.add(after)
        front = following
    return found


@pytest.mark.parametrize(("board", "num_positions"), [("tic_tac_toe", 4520), ("hex:2", None), ("hex:3", None)])
def test_compiled_rules_reach_the_positions_of_the_solver(board, num_positions):
    game, solver = make_game(board), solve(board)
    solved = reachable_positions(game)
    stones = np.asarray(stone_owners(game, solved.states))
    weights = 1 << np.arange(solver.num_cells)
    reached = {(int((row == 1) @ weights), int((row == 2) @ weights)) for row in stones}
    assert reached == _host_positions(solver)
    assert len(reached) == len(solved.values) == (num_positions or len(reached))


@pytest.mark.parametrize("board", ["tic_tac_toe", "hex:3"])
def test_values_agree_with_the_compiled_rules(board):
    game = make_game(board)
    solved = reachable_positions(game)
    assert (solved.values == solved.action_values.max(axis=1)).all()
    legal = np.asarray(solved.states.legal_action_mask)
    assert ((solved.action_values != ILLEGAL) == legal).all()
    by_code = dict(zip(np.asarray(position_code(game, solved.states)).tolist(), solved.values.tolist(), strict=True))
    parents, actions = np.nonzero(legal)
    before = jax.tree.map(lambda x: jnp.asarray(x[parents]), solved.states)
    after = compile_step(game)(before, actions, jax.random.split(KEY, len(actions)))
    paid = np.asarray(after.rewards)[np.arange(len(actions)), np.asarray(before.current_player)]
    codes = np.asarray(position_code(game, after)).tolist()
    over = np.asarray(after.terminated)
    expected = [paid[i] if over[i] else -by_code[code] for i, code in enumerate(codes)]
    assert (solved.action_values[parents, actions] == expected).all()


def test_known_values():
    game = make_game("tic_tac_toe")
    state = first_state(game)
    assert solve("tic_tac_toe").action_values(state).max() == 0
    corner = game.step(state, jnp.int32(0), KEY)
    # Against the corner only the centre draws.
    assert solve("tic_tac_toe").action_values(corner).tolist() == [ILLEGAL, -1, -1, -1, 0, -1, -1, -1, -1]
    hex_state = first_state(make_game("hex:3"))
    assert solve("hex:3").action_values(hex_state).max() == 1  # the first player wins Hex of every size (Nash)
    assert solve("hex:3").action_values(hex_state)[4] == 1
    assert set(reachable_positions(make_game("hex:3")).values.tolist()) == {-1, 1}  # there is no draw


def test_table_holds_the_best_moves():
    game = make_game("tic_tac_toe")
    table = make_solved_table(game)
    assert table.shape == (3**9, 9)
    assert table[0].all()  # every first move draws
    assert table[1].tolist() == [False] * 4 + [True] + [False] * 4


def test_too_large_board_is_rejected():
    for board in ("hex:6", "hex:3:swap", "connect_four", "gomoku:9"):
        with pytest.raises(UserError, match=f"board {board}: there is no exact solver; use tic_tac_toe"):
            solve(board)
        with pytest.raises(UserError, match=r"by table; use .* \(alphagat match also solves connect_four"):
            reachable_positions(make_game(board))
