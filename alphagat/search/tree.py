"""The interface to mctx: the root, and the recurrent function that expands one edge."""

# The types that mctx declares (chex's arrays, dataclasses, trees) are too wide for a type checker.
# pyright: reportCallIssue=false, reportReturnType=false, reportIndexIssue=false, reportArgumentType=false

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import mctx
import optax

from alphagat.games.base import Game
from alphagat.games.transition import transition
from alphagat.search.evaluator import Evaluator, evaluate_states

VARIATION_LENGTH = 12  # moves of a principal variation
MIN_LOG_PRIOR = -20.0


class RootStatistics(NamedTuple):
    """Statistics of a root for display; XLA removes them from programs that do not use them.

    Attributes:
      visits: `[B, A]` int32, simulations through each action.
      action_values: `[B, A]` float32, for the player to move; NaN if never visited.
      variations: `[B, A, VARIATION_LENGTH]` int32, each action followed by the most visited moves (ties: the
        best value); -1 from the end of the game or the tree, or from the first chance node, onwards.
    """

    visits: jax.Array
    action_values: jax.Array
    variations: jax.Array


class SearchOutput(NamedTuple):
    """Search results of a batch of states, from the perspective of the player to move; undefined for terminal states.

    Attributes:
      action: `[B]` int32, the move to play.
      policy_target: `[B, A]`, sums to 1: completed-Q action weights (Gumbel) or visit shares (PUCT).
      value: `[B]`, of the position: that of the improved policy (Gumbel), or the mean over the root's evaluation and
        the simulations (PUCT).
      root: statistics of the tree; None for a search without a tree.
      surprise: `[B]`, as in `policy_surprise`; None for searches that produce no training targets.
    """

    action: jax.Array
    policy_target: jax.Array
    value: jax.Array
    root: RootStatistics | None = None
    surprise: jax.Array | None = None


Search = Callable[[Any, jax.Array, Any, jax.Array], SearchOutput]  # (params, key, states [B], plies [B])


def invalid_actions(states: Any) -> jax.Array:
    """Returns `[B, A]` bool, True where illegal: mctx's mask."""
    return ~states.legal_action_mask


def mask_illegal(prior_logits: jax.Array, states: Any) -> jax.Array:
    """Sets the `[B, A]` logits of illegal actions to the lowest finite number."""
    return jnp.where(invalid_actions(states), jnp.finfo(prior_logits.dtype).min, prior_logits)


def likeliest_action(prior_logits: jax.Array, states: Any) -> jax.Array:
    """Returns `[B]` int32, the legal action with the highest prior."""
    return mask_illegal(prior_logits, states).argmax(axis=-1).astype(jnp.int32)


def policy_surprise(policy_target: jax.Array, prior_logits: jax.Array) -> jax.Array:
    """Returns `[B]`, in nats, the Kullback-Leibler divergence of the target from the (masked) prior.

    The logarithm of the prior counts as `MIN_LOG_PRIOR` at least: where a move wins at once, the other legal moves have
    no prior, but root noise may send simulations to them.
    """
    log_prior = jnp.maximum(jax.nn.log_softmax(prior_logits), MIN_LOG_PRIOR)
    return optax.losses.kl_divergence(log_prior, policy_target)


def make_root(evaluate: Evaluator, params: Any, states: Any) -> mctx.RootFnOutput:
    """Evaluates the root states."""
    evaluation = evaluate_states(evaluate, params, states)
    return mctx.RootFnOutput(
        prior_logits=mask_illegal(evaluation.prior_logits, states), value=evaluation.value, embedding=states
    )


def make_recurrent_fn(game: Game, evaluate: Evaluator, discount: float = 1.0) -> mctx.RecurrentFn:
    """Returns mctx's recurrent function: one move by the rules, then one evaluation.

    mctx masks illegal actions only at the root, so the prior is masked here. The value of a terminal state is 0,
    because its result is paid as a reward.
    """

    def recurrent_fn(params: Any, key: jax.Array, actions: jax.Array, states: Any):
        keys = jax.random.split(key, actions.shape[0])
        next_states = jax.vmap(game.step)(states, actions, keys)
        paid = jax.vmap(functools.partial(transition, per_move=discount))(states, next_states)
        evaluation = evaluate_states(evaluate, params, next_states)
        output = mctx.RecurrentFnOutput(
            reward=paid.reward,
            discount=paid.discount,
            prior_logits=mask_illegal(evaluation.prior_logits, next_states),
            value=jnp.where(next_states.terminated, 0.0, evaluation.value),
        )
        return output, next_states

    return recurrent_fn


def policy_value(tree: mctx.Tree, policy: jax.Array) -> jax.Array:
    """Returns `[B]`, the value of `policy` `[B, A]` at the root from the Q-values of visited actions.

    The mean over simulations would be too low: sequential halving first visits all considered actions equally.
    """
    num_actions = policy.shape[1]
    visited = tree.children_visits[:, tree.ROOT_INDEX, :num_actions] > 0
    rewards, discounts, values = (
        x[:, tree.ROOT_INDEX, :num_actions]
        for x in (tree.children_rewards, tree.children_discounts, tree.children_values)
    )
    weights = jnp.where(visited, policy, 0.0)
    # A sharp policy may round to 0 on all visited actions.
    weights = jnp.where(weights.sum(-1, keepdims=True) > 0, weights, visited)
    return (weights * (rewards + discounts * values)).sum(-1) / weights.sum(-1)


def make_output(
    tree: mctx.Tree,
    action: jax.Array,
    policy_target: jax.Array,
    value: jax.Array,
    prior_logits: jax.Array,
    columns: jax.Array | None = None,
) -> SearchOutput:
    """Returns the output of a search that built mctx's `tree`.

    The `prior_logits` `[B, A]` are masked and without noise; `columns` is as in `describe_root`.
    """
    root = describe_root(tree, policy_target.shape[1], columns)
    return SearchOutput(action, policy_target, value, root, policy_surprise(policy_target, prior_logits))


def describe_root(tree: mctx.Tree, num_actions: int, columns: jax.Array | None) -> RootStatistics:
    """Returns the root statistics of mctx's tree, whose first `num_actions` columns are moves.

    Variations consist of the actions `columns` `[B, N, num_actions]` of the nodes, or of columns.
    """
    visits, rewards, discounts, values, children = (
        x[..., :num_actions]
        for x in (
            tree.children_visits,
            tree.children_rewards,
            tree.children_discounts,
            tree.children_values,
            tree.children_index,
        )
    )
    return root_statistics(visits, rewards + discounts * values, discounts, children, columns)


def root_statistics(
    visits: jax.Array, values: jax.Array, discounts: jax.Array, children: jax.Array, columns: jax.Array | None = None
) -> RootStatistics:
    """Returns the root statistics of a tree whose root is node 0.

    Args:
      visits: `[B, N, A]` simulations through each action of each node.
      values: `[B, N, A]` of these actions for the player to move; undefined for unvisited ones.
      discounts: `[B, N, A]`, 0 if the action ends the game.
      children: `[B, N, A]` the node after each action, -1 for none.
      columns: `[B, N, A]` what to call each action in variations; None: its number.
    """
    chex.assert_rank(visits, 3)
    chex.assert_equal_shape([visits, values, discounts, children])
    batch_size, _, num_actions = visits.shape
    rows = jnp.arange(batch_size)[:, None]
    most = visits.max(axis=-1, keepdims=True)
    best = jnp.where((visits == most) & (most > 0), values, -jnp.inf).argmax(axis=-1)
    best = jnp.where(most[..., 0] > 0, best, -1).astype(jnp.int32)  # [B, N]

    def follow(carry: tuple[jax.Array, jax.Array], _: None) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        node, move = carry  # [B, A] both, -1 after the end
        called = move if columns is None else jnp.where(move < 0, -1, columns[rows, node, move])
        child = jnp.where(move < 0, -1, children[rows, node, move])
        is_over = (child < 0) | (discounts[rows, node, move] == 0)
        return (child, jnp.where(is_over, -1, best[rows, child])), called

    first = jnp.broadcast_to(jnp.arange(num_actions, dtype=jnp.int32), (batch_size, num_actions))
    _, moves = jax.lax.scan(follow, (jnp.zeros_like(first), first), None, length=VARIATION_LENGTH)
    action_values = jnp.where(visits[:, 0] > 0, values[:, 0], jnp.nan)
    return RootStatistics(visits[:, 0], action_values, jnp.moveaxis(moves, 0, -1))
