"""Gumbel search with chance nodes.

Decision and chance nodes alternate in one tree of A + C actions: a move leads to its afterstate, a chance outcome to a
state. The rules are known, so the search differs from mctx's stochastic policy (Antonoglou et al. 2022, "Planning in
stochastic environments with a learned model"):

- A simulation needs one evaluation instead of two: the value of an afterstate is that of one outcome, sampled when the
  search first reaches the afterstate. The network learns no afterstate values.
- Outcomes are sampled by their probability. mctx's visit quota takes equally likely outcomes in order of their numbers,
  so a few visits would cover only one corner of the board.
- The reward of a move is paid at the move, not at the following outcome.
- The root uses sequential halving, as in other games.
"""

# The types that mctx declares (chex's arrays, dataclasses, trees) are too wide for a type checker.
# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false, reportIndexIssue=false

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import mctx
from flax import struct

from alphagat.games.base import StochasticGame
from alphagat.games.states import select
from alphagat.games.transition import transition
from alphagat.search.evaluator import Evaluator, evaluate_states
from alphagat.search.tree import (
    Search,
    SearchOutput,
    invalid_actions,
    make_output,
    mask_illegal,
    policy_value,
)

_IMPOSSIBLE = jnp.finfo(jnp.float32).min  # finite, so that the difference of two is not NaN


class Node(struct.PyTreeNode):
    """The embedding of a node.

    Attributes:
      state: a state, or an afterstate if chance is to move.
      awaits_chance: `[]` bool.
    """

    state: Any
    awaits_chance: jax.Array


def make_chance_recurrent_fn(game: StochasticGame, evaluate: Evaluator) -> mctx.RecurrentFn:
    """Returns mctx's recurrent function over `Node`s: actions below A are moves, the others chance outcomes."""
    num_actions = game.num_actions

    def recurrent_fn(params: Any, key: jax.Array, actions: jax.Array, nodes: Node):
        before, at_chance = nodes.state, nodes.awaits_chance
        over = before.terminated
        moved = jax.vmap(game.move)(before, jnp.minimum(actions, num_actions - 1))
        afterstates = select(at_chance | over, before, moved)
        chance = jnp.maximum(jax.vmap(game.chance_log_probs)(afterstates), _IMPOSSIBLE)
        sampled = jax.vmap(game.draw)(afterstates, jax.random.split(key, len(actions)))
        outcomes = jnp.where(at_chance, actions - num_actions, sampled)
        resolved = select(over, before, jax.vmap(game.resolve)(afterstates, outcomes))

        evaluation = evaluate_states(evaluate, params, resolved)
        value = jnp.where(resolved.terminated, 0.0, evaluation.value)
        reward, move_discount = jax.vmap(transition)(before, moved)
        _, chance_discount = jax.vmap(transition)(afterstates, resolved)
        prior = mask_illegal(evaluation.prior_logits, resolved)
        output = mctx.RecurrentFnOutput(
            reward=jnp.where(at_chance | over, 0.0, reward),
            discount=jnp.where(over, 0.0, jnp.where(at_chance, chance_discount, move_discount)),
            prior_logits=jnp.where(
                at_chance[:, None],
                _join(prior, jnp.full_like(chance, _IMPOSSIBLE)),
                _join(jnp.full_like(prior, _IMPOSSIBLE), chance),
            ),
            # The value of an afterstate is from the perspective of its `current_player`.
            value=jnp.where(at_chance, value, chance_discount * value),
        )
        return output, Node(select(at_chance, resolved, afterstates), ~at_chance)

    return recurrent_fn


def make_stochastic_search(
    game: StochasticGame,
    evaluate: Evaluator,
    *,
    num_simulations: int,
    max_num_considered_actions: int,
    qtransform: Callable[[mctx.Tree, jax.Array], jax.Array],
    exploration_plies: int,
) -> Search:
    """Returns the search of a game with chance moves. About half of its simulations reach a new afterstate."""
    recurrent_fn = make_chance_recurrent_fn(game, evaluate)
    num_actions, num_outcomes = game.num_actions, game.num_chance_outcomes
    select_at_root = functools.partial(
        mctx.gumbel_muzero_root_action_selection,
        num_simulations=num_simulations,
        max_num_considered_actions=max_num_considered_actions,
        qtransform=qtransform,
    )

    def select_inside(key, tree, node, depth):
        draw = jax.random.categorical(key, tree.children_prior_logits[node]).astype(jnp.int32)
        choice = mctx.gumbel_muzero_interior_action_selection(key, tree, node, depth, qtransform=qtransform)
        return jnp.where(tree.embeddings.awaits_chance[node], draw, choice)

    def search(params: Any, key: jax.Array, states: Any, plies: jax.Array) -> SearchOutput:
        gumbel_key, search_key = jax.random.split(key)
        evaluation = evaluate_states(evaluate, params, states)
        batch_size = evaluation.value.shape[0]
        logits = mask_illegal(evaluation.prior_logits, states)
        noise = jax.random.gumbel(gumbel_key, logits.shape)
        gumbel = jnp.where((plies < exploration_plies)[:, None], noise, 0.0)
        no_outcome = jnp.full((batch_size, num_outcomes), _IMPOSSIBLE)
        tree = mctx.search(
            params,
            search_key,
            root=mctx.RootFnOutput(
                prior_logits=_join(logits, no_outcome),
                value=evaluation.value,
                embedding=Node(states, jnp.zeros(batch_size, bool)),
            ),
            recurrent_fn=recurrent_fn,
            root_action_selection_fn=select_at_root,
            interior_action_selection_fn=select_inside,
            num_simulations=num_simulations,
            invalid_actions=_join(invalid_actions(states), jnp.ones((batch_size, num_outcomes), bool)),
            extra_data=mctx.GumbelMuZeroExtraData(root_gumbel=_join(gumbel, jnp.zeros_like(no_outcome))),
        )
        values = jax.vmap(qtransform, in_axes=(0, None))(tree, tree.ROOT_INDEX)[:, :num_actions]
        visits = tree.summary().visit_counts[:, :num_actions]
        most_visited = (visits == visits.max(axis=-1, keepdims=True)) & ~invalid_actions(states)
        action = jnp.where(most_visited, gumbel + logits + values, -jnp.inf).argmax(axis=-1).astype(jnp.int32)
        policy_target = jax.nn.softmax(mask_illegal(logits + values, states))
        return make_output(tree, action, policy_target, policy_value(tree, policy_target), logits)

    return search


def _join(moves: jax.Array, outcomes: jax.Array) -> jax.Array:  # [B, A], [B, C] -> [B, A + C]
    return jnp.concatenate([moves, outcomes], axis=-1)
