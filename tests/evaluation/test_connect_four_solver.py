import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.evaluation import connect_four_solver
from alphagat.evaluation.connect_four_solver import ILLEGAL, connect_four_scores
from alphagat.evaluation.openings import random_positions
from alphagat.games import make_game
from alphagat.games.batches import compile_step
from alphagat.games.states import first_state

KEY = jax.random.key(0)


def _after(*games):
    game = make_game("connect_four")
    step = jax.jit(game.step)
    states = []
    for moves in games:
        state = first_state(game)
        for column in moves:
            state = step(state, jnp.int32(column), KEY)
        states.append(state)
    return jax.tree.map(lambda *parts: jnp.stack(parts), *states)


def test_scores_of_known_positions():
    pytest.importorskip("bitbully")
    scores = connect_four_scores(_after((), (3, 3, 3, 3, 3, 3), (0, 6, 1, 6, 2, 5), (0, 6, 1, 6, 2)))
    assert scores[0].tolist() == [-2, -1, 0, 1, 0, -1, -2]  # the first player wins in the centre only (Allis 1988)
    assert scores[1, 3] == ILLEGAL
    assert (scores[2].argmax(), scores[2].max() > 0) == (3, True)  # player 0 completes four
    assert (scores[3].argmax(), (np.delete(scores[3], 3) < 0).all()) == (3, True)  # player 1 has to stop it


def test_scores_agree_with_the_rules():
    pytest.importorskip("bitbully")
    game = make_game("connect_four")
    states = random_positions(game, 30, 20, 34, seed=0)
    scores = connect_four_scores(states)
    legal = np.asarray(states.legal_action_mask)
    assert ((scores != ILLEGAL) == legal).all()
    rows, columns = np.nonzero(legal)
    before = jax.tree.map(lambda x: x[rows], states)
    after = compile_step(game)(before, jnp.asarray(columns), jax.random.split(KEY, len(rows)))
    paid = np.asarray(after.rewards)[np.arange(len(rows)), np.asarray(before.current_player)]
    wins = paid == 1
    assert wins.any()
    # A move that wins at once has the highest score that its position allows, and no other move has it.
    best = scores.max(axis=1)[rows]
    winning_rows = set(rows[wins])
    for row, score, is_win in zip(rows, scores[rows, columns], wins, strict=True):
        if row in winning_rows:
            assert (score == scores[row].max()) == is_win
    assert (best[wins] > 0).all()


def test_missing_solver_package_is_named(monkeypatch):
    connect_four_solver._make_solver.cache_clear()
    monkeypatch.setitem(sys.modules, "bitbully", None)
    with pytest.raises(UserError, match=r"pip install 'alphagat\[solvers\]'"):
        connect_four_scores(_after(()))
