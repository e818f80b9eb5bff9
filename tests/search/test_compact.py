"""Searches with a column per legal action find what those with a column per action find."""

import chess
import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.evaluation.openings import random_positions
from alphagat.games import make_game
from alphagat.games.batches import take
from alphagat.games.chess import ChessGame
from alphagat.search import Evaluation, make_search
from alphagat.search.compact import CompactGame, is_compact, num_columns
from alphagat.search.growing_search import make_growing_search

GAMES, PLIES, SIMULATIONS = 12, 40, 48
BOARDS = ["gardner_chess", "chess"]
every_board = pytest.mark.parametrize("board", BOARDS)


def make_evaluator(game):
    """Gives every action a different logit in every position, the highest to illegal ones."""
    weights = np.random.default_rng(0).normal(0, 1, (game.topology.num_nodes * game.num_features, game.num_actions + 1))

    def evaluate(params, states):
        nodes = jax.vmap(game.observe)(states)
        scores = jnp.sin(nodes.reshape(len(nodes), -1) @ jnp.asarray(weights, jnp.float32))
        return Evaluation(jnp.where(states.legal_action_mask, 2 * scores[:, 1:], 9.0), 0.9 * scores[:, 0])

    return evaluate


@pytest.mark.parametrize("algorithm", ["gumbel", "puct"])
@every_board
def test_finds_what_the_wide_search_finds(board, algorithm, monkeypatch):
    game = make_game(board)
    states, plies = random_positions(game, GAMES, 0, PLIES, seed=0), jnp.zeros(GAMES, jnp.int32)
    found = []
    for bound in (game.max_legal_actions, game.num_actions):
        monkeypatch.setattr(ChessGame, "max_legal_actions", bound)
        options = {"algorithm": algorithm, "num_simulations": SIMULATIONS, "explore": False}
        search = jax.jit(make_search(game, make_evaluator(game), **options))
        found.append(jax.tree.map(np.asarray, search(None, jax.random.key(2), states, plies)))
    compact, wide = found
    assert compact.policy_target.shape == (GAMES, game.num_actions)
    np.testing.assert_array_equal(compact.action, wide.action)
    np.testing.assert_array_equal(compact.root.visits, wide.root.visits)
    np.testing.assert_array_equal(compact.root.variations, wide.root.variations)
    for ours, theirs in (
        (compact.policy_target, wide.policy_target),
        (compact.value, wide.value),
        (compact.surprise, wide.surprise),
        (compact.root.action_values, wide.root.action_values),
    ):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
    assert (np.take_along_axis(np.asarray(states.legal_action_mask), compact.action[:, None], axis=1)).all()
    assert compact.root.variations[:, :, 2].max() > 0  # some lines are three moves long


@every_board
def test_growing_search_finds_what_the_wide_one_finds(board, monkeypatch):
    """Also after it resumes from its most visited child."""
    game = make_game(board)
    states, found = random_positions(game, GAMES, 0, PLIES, seed=0), []
    for bound in (game.max_legal_actions, game.num_actions):
        monkeypatch.setattr(ChessGame, "max_legal_actions", bound)
        search = make_growing_search(game, make_evaluator(game), capacity=SIMULATIONS, num_leaves=4)
        start, grow, resume = jax.jit(search.start), jax.jit(search.grow), jax.jit(search.resume)
        describe = jax.jit(lambda tree, search=search: (tree.visits[0].sum(), search.prior(tree), search.read(tree)))
        for row in (0, 5, GAMES - 1):
            state = take(states, row)
            tree = grow(None, start(None, state), SIMULATIONS, SIMULATIONS)
            described = describe(tree)
            after = jax.jit(game.step)(state, described[2].action[0], jax.random.key(0))
            found.append(jax.tree.map(np.asarray, (described, describe(resume(None, tree, after)))))
    for compact, wide in zip(found[: len(found) // 2], found[len(found) // 2 :], strict=True):
        chex.assert_trees_all_close(compact, wide, atol=2e-5)
        assert compact[0][1].shape == (1, game.num_actions)
    assert max(resumed[0] for _, resumed in found) > 0


@every_board
def test_explores_legal_actions_alone(board):
    game = make_game(board)
    states, plies = random_positions(game, GAMES, 0, PLIES, seed=0), jnp.zeros(GAMES, jnp.int32)
    options = {"algorithm": "puct", "num_simulations": 8, "temperature": 5.0, "dirichlet_fraction": 0.9}
    search = jax.jit(make_search(game, make_evaluator(game), explore=True, **options))
    legal, moves = np.asarray(states.legal_action_mask), set()
    for seed in range(5):
        output = search(None, jax.random.key(seed), states, plies)
        assert legal[np.arange(GAMES), output.action].all()
        assert (np.asarray(output.policy_target)[~legal] == 0).all()
        moves.add(tuple(np.asarray(output.action).tolist()))
    assert len(moves) > 1


def test_action_of_a_finished_game_is_one_of_the_game():
    """Matches search finished games along with the others."""
    game = make_game("gardner_chess")
    states = random_positions(game, GAMES, 0, PLIES, seed=0)
    over = jnp.arange(GAMES) < 4
    states = states.replace(terminated=over, planes=jnp.where(over[:, None, None, None], 0, states.planes))
    search = jax.jit(make_search(game, make_evaluator(game), algorithm="gumbel", num_simulations=4, explore=False))
    output = search(None, jax.random.key(0), states, jnp.zeros(GAMES, jnp.int32))
    assert (output.action[:4] == 0).all()
    assert np.asarray(states.legal_action_mask)[np.arange(4, GAMES), output.action[4:]].all()


@every_board
def test_columns_are_the_legal_actions(board):
    game = make_game(board)
    states = random_positions(game, GAMES, 0, PLIES, seed=0)
    columns = np.asarray(jax.jit(jax.vmap(CompactGame(game).compact))(states).columns)
    for row in range(GAMES):
        expected = np.flatnonzero(np.asarray(take(states, row).legal_action_mask))
        assert len(expected) > 0
        np.testing.assert_array_equal(columns[row, : len(expected)], expected)
        assert (columns[row, len(expected) :] == game.num_actions).all()


def test_the_bound_of_chess_is_reached():
    """The position of Petrović has as many legal moves as `max_legal_actions`, according to python-chess, too."""
    fen = "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1"
    assert chess.Board(fen).legal_moves.count() == make_game("chess").max_legal_actions


def test_games_with_chance_keep_a_column_per_action(monkeypatch):
    game = make_game("2048")
    monkeypatch.setattr(type(game), "max_legal_actions", game.num_actions - 1)
    assert not is_compact(game)
    assert num_columns(game) == game.num_actions
