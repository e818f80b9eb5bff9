"""Evaluators without a network, and a look into the tree of a search."""

import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from alphagat.evaluation.solvers import position_code, reachable_positions
from alphagat.search import Evaluation, make_search

WILD = 100.0  # what an evaluator may say of terminal states, and what nobody may listen to


def uniform_evaluator(params, states):
    legal = states.legal_action_mask
    return Evaluation(jnp.zeros(legal.shape), jnp.zeros(legal.shape[0]))


@functools.cache
def make_table_evaluator(game, seed=0):
    """Gives whole-numbered logits and values in quarters; the highest logits are those of illegal actions."""
    generator = np.random.default_rng(seed)
    logits = generator.integers(-3, 4, (3**9, game.num_actions)).astype(np.float32)
    values = (generator.integers(-3, 4, 3**9) / 4).astype(np.float32)

    def evaluate(params, states):
        code = position_code(game, states)
        value = jnp.where(states.terminated, WILD, jnp.asarray(values)[code])
        return Evaluation(jnp.where(states.legal_action_mask, jnp.asarray(logits)[code], 9.0), value)

    return evaluate


@functools.cache
def make_exact_evaluator(game):
    """Gives the exact value for the player to move."""
    solved = reachable_positions(game)
    values = np.zeros(3**9, np.float32)
    values[np.asarray(position_code(game, solved.states))] = solved.values

    def evaluate(params, states):
        value = jnp.where(states.terminated, WILD, jnp.asarray(values)[position_code(game, states)])
        return Evaluation(jnp.zeros(states.legal_action_mask.shape), value)

    return evaluate


def make_tree_search(game, evaluate, **options):
    """Returns the jitted `search(key, states, plies) -> (SearchOutput, mctx's tree)`."""
    search = make_search(game, evaluate, **options)

    @jax.jit
    def run(key, states, plies):
        outputs = []
        with pytest.MonkeyPatch.context() as patch:
            for name in ("gumbel_muzero_policy", "muzero_policy"):
                patch.setattr(mctx, name, functools.partial(_listen, getattr(mctx, name), outputs))
            found = search(None, key, states, plies)
        return found, outputs[0].search_tree

    return run


def _listen(policy, outputs, *arguments, **keywords):
    outputs.append(policy(*arguments, **keywords))
    return outputs[-1]


def all_positions(game):
    """Returns every position of a solved board, on the device, and the plies that led to it."""
    solved = reachable_positions(game)
    states = jax.tree.map(jnp.asarray, solved.states)
    return states, (solved.action_values == -2).sum(axis=1).astype(np.int32)


def some_positions(game, number, seed=0):
    states, plies = all_positions(game)
    rows = np.random.default_rng(seed).choice(len(plies), number, replace=False)
    return jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[rows]), states), plies[rows]
