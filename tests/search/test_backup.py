"""AlphaGAT's backup against mctx's own, on trees of real searches."""

import importlib.util

import chex
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from alphagat.games import make_game
from alphagat.search import Evaluation
from alphagat.search.backup import back_up
from alphagat.search.policies import make_search
from tests.evaluation.toy import PileGame, piles
from tests.search.evaluators import make_table_evaluator, make_tree_search, some_positions

NUM_SIMULATIONS = 24


@pytest.fixture(scope="module")
def original():
    """Returns mctx's own backup, from a fresh copy of its module."""
    spec = importlib.util.find_spec("mctx._src.search")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.backward is not back_up
    return module.backward


def evaluate_pile(params, states):
    return Evaluation(jnp.zeros(states.legal_action_mask.shape), 0.9 * jnp.sin(states.pile))


@pytest.fixture(scope="module", params=["alternating", "extra moves"])
def tree(request):
    if request.param == "alternating":
        game = make_game("tic_tac_toe")
        evaluate, (states, plies) = make_table_evaluator(game), some_positions(game, 20)
    else:
        game, evaluate = PileGame(12), evaluate_pile
        states, plies = piles(range(1, 13)), jnp.zeros(12, jnp.int32)
    search = make_tree_search(game, evaluate, algorithm="puct", num_simulations=NUM_SIMULATIONS, explore=True)
    return search(jax.random.key(0), states, plies)[1]


def test_equals_backup_of_mctx_from_every_node(tree, original):
    num_trees, num_nodes = tree.node_visits.shape
    ours, theirs = jax.jit(back_up), jax.jit(original)
    depths = set()
    for shift in range(num_nodes):  # each call starts from nodes of different depths
        leaves = (jnp.arange(num_trees) + shift) % num_nodes
        leaves = jnp.where(tree.node_visits[jnp.arange(num_trees), leaves] > 0, leaves, tree.ROOT_INDEX)
        expected, found = theirs(tree, leaves), ours(tree, leaves)
        chex.assert_trees_all_close(found, expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_array_equal(found.children_visits, expected.children_visits)
        np.testing.assert_array_equal(found.node_visits, expected.node_visits)
        depths |= set(np.asarray(found.node_visits.sum(axis=1) - tree.node_visits.sum(axis=1)).tolist())
    assert {0, 1, 2, 3} <= depths


def pick(number, tree):
    return jax.tree.map(lambda x: x[number], tree)


@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None)], ids=["both", "leaves", "tree"])
def test_batches_of_searches_equal_each_alone(tree, axes):
    """The arguments with an axis differ between three searches, in each of two equal batches."""
    num_trees, num_nodes = tree.node_visits.shape
    leaves = jnp.stack([(jnp.arange(num_trees) + shift) % num_nodes for shift in range(3)])
    leaves = jnp.where(tree.node_visits[jnp.arange(num_trees), leaves] > 0, leaves, tree.ROOT_INDEX)
    changed = [tree.replace(node_values=factor * tree.node_values) for factor in (1.0, 2.0, 3.0)]
    trees = jax.tree.map(lambda *x: jnp.stack(x), *changed)
    arguments = [x if axis == 0 else pick(1, x) for axis, x in zip(axes, (trees, leaves), strict=True)]
    batches = jax.tree.map(lambda x: jnp.stack([x, x]), arguments)
    found = jax.jit(jax.vmap(jax.vmap(back_up, axes)))(*batches)
    for number in range(3):
        alone = [pick(number, x) if axis == 0 else x for axis, x in zip(axes, arguments, strict=True)]
        expected = jax.jit(back_up)(*alone)
        for batch in range(2):
            chex.assert_trees_all_close(pick((batch, number), found), expected, rtol=1e-6, atol=1e-7)


def test_a_batch_of_searches_copies_no_table(tree):
    """A loop that may have ended for some searches would select between the old and the new tables."""
    leaves = jnp.ones((3, len(tree.parents)), jnp.int32)
    program = jax.jit(jax.vmap(back_up, (None, 0))).lower(tree, leaves).as_text()
    tables = "x".join(map(str, tree.children_values.shape[1:]))
    assert f"x{tables}x" in program
    assert not [line for line in program.splitlines() if "stablehlo.select" in line and f"x{tables}x" in line]


def test_only_our_searches_use_it(original):
    """Other users of mctx in the same process keep its own backup, also after a search that failed."""
    game, used = make_game("tic_tac_toe"), []

    def evaluate(params, states):
        used.append(mctx.search.__globals__["backward"] is back_up)
        if params:
            raise ValueError
        return Evaluation(jnp.zeros(states.legal_action_mask.shape), jnp.zeros(len(states.terminated)))

    search = make_search(game, evaluate, algorithm="gumbel", num_simulations=2, explore=False)
    states, plies = some_positions(game, 2)
    search(0, jax.random.key(0), states, plies)
    with pytest.raises(ValueError):
        search(1, jax.random.key(0), states, plies)
    assert used
    assert all(used)
    assert mctx.search.__globals__["backward"].__qualname__ == original.__qualname__ != back_up.__qualname__
