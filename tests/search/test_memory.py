"""The estimate of search trees agrees with their arrays, and refuses what cannot fit before anything is compiled."""

import math

import jax
import jax.numpy as jnp
import pytest
from jax.extend.core import Jaxpr, jaxprs_in_params

from alphagat.errors import UserError
from alphagat.evaluation import mcts
from alphagat.games import make_game
from alphagat.games.states import first_state
from alphagat.search import growing_tree, make_search
from alphagat.search.evaluator import Evaluation
from alphagat.search.growing_search import make_growing_search
from alphagat.search.memory import num_bytes, tree_bytes
from alphagat.wording import sized

GAMES, SIMULATIONS = 64, 200
GAME = make_game("hex:9")


def evaluate(params, states):
    return Evaluation(jnp.zeros(states.legal_action_mask.shape), jnp.zeros(states.terminated.shape))


def batch(game):
    return jax.tree.map(lambda x: jnp.stack([x] * GAMES), first_state(game))


def search_by_mctx(states):
    options = {"algorithm": "puct", "num_simulations": SIMULATIONS, "explore": False}
    make_search(GAME, evaluate, **options)(None, jax.random.key(0), states, jnp.zeros(GAMES, jnp.int32))


def search_by_rollouts(states):
    mcts.make_mcts(GAME, SIMULATIONS)(jax.random.key(0), states)


def grow_a_tree(states):
    make_growing_search(GAME, evaluate, capacity=GAMES * SIMULATIONS, num_leaves=1)


def largest_loop_state(jaxpr: Jaxpr) -> float:
    """Returns the bytes of the largest state that a loop carries, at any depth."""
    found = [0.0]
    for equation in jaxpr.eqns:
        if equation.primitive.name in ("while", "scan"):
            found.append(num_bytes([each.aval for each in equation.outvars]))
        found += [largest_loop_state(inner) for inner in jaxprs_in_params(equation.params)]
    return max(found)


@pytest.mark.parametrize("board", ["hex:9", "2048", "gardner_chess"])
def test_the_estimate_of_mctx_is_its_tree(board: str):
    game = make_game(board)
    search = make_search(game, evaluate, algorithm="gumbel", num_simulations=SIMULATIONS, explore=False)
    arguments = None, jax.random.key(0), batch(game), jnp.zeros(GAMES, jnp.int32)
    held = largest_loop_state(jax.make_jaxpr(search)(*arguments).jaxpr)
    assert held == pytest.approx(GAMES * tree_bytes(game, SIMULATIONS), rel=0.05)


@pytest.mark.parametrize("board", ["hex:9", "gardner_chess"])
def test_the_estimate_of_a_growing_tree_is_its_tree(board: str):
    game = make_game(board)
    search = make_growing_search(game, evaluate, capacity=SIMULATIONS, num_leaves=1)
    tree = jax.eval_shape(search.start, None, first_state(game))
    assert num_bytes(tree) == pytest.approx(growing_tree.tree_bytes(game, SIMULATIONS), rel=0.01)


def test_the_estimate_of_rollouts_is_their_tree():
    tree = jax.eval_shape(mcts.make_mcts(GAME, SIMULATIONS), jax.random.key(0), batch(GAME))
    assert num_bytes(tree) == pytest.approx(GAMES * mcts.tree_bytes(GAME, SIMULATIONS), rel=0.05)


@pytest.mark.parametrize("run", [search_by_mctx, search_by_rollouts, grow_a_tree])
def test_trees_that_do_not_fit_are_refused(run, monkeypatch: pytest.MonkeyPatch):
    needed = jax.local_device_count() * GAMES * mcts.tree_bytes(GAME, SIMULATIONS)  # mctx needs more
    monkeypatch.setattr("alphagat.runtime.memory.available_memory", lambda: 0.9 * needed)
    with pytest.raises(
        UserError,
        match=rf"games? at once: the search trees need about .*, of {sized(0.9 * needed / jax.local_device_count())};",
    ):
        jax.eval_shape(run, batch(GAME))
    monkeypatch.setattr("alphagat.runtime.memory.available_memory", lambda: 3 * needed)
    jax.eval_shape(run, batch(GAME))
    monkeypatch.setattr("alphagat.runtime.memory.available_memory", lambda: math.inf)  # unknown
    jax.eval_shape(run, batch(GAME))
