"""The score by which both PUCT searches choose an action: Q + c P sqrt(N) / (1 + n).

Q is the mean result of the action in [-1, 1], not rescaled; n are the visits of the action, N those of its node, and
c = c1 + log((1 + N + c2) / c2) (Silver et al. 2018, methods, "Search"). The Q of an unvisited action is the mean of its
node minus `FIRST_PLAY_REDUCTION` times the square root of the total prior of the visited actions.
"""

# mctx declares its arrays too wide for a type checker.
# pyright: reportIndexIssue=false

import jax
import jax.numpy as jnp
import mctx

EXPLORATION, EXPLORATION_BASE = 1.25, 19652.0  # c1, c2
FIRST_PLAY_REDUCTION = 0.2


def unvisited_value(mean: jax.Array, prior: jax.Array, is_visited: jax.Array) -> jax.Array:
    """Returns the Q of the unvisited actions of a node, `[]`.

    Args:
      mean: `[]`, the mean over the node's own evaluation and its simulations.
      prior: `[A]`.
      is_visited: `[A]` bool.
    """
    return mean - FIRST_PLAY_REDUCTION * jnp.sqrt(jnp.where(is_visited, prior, 0.0).sum())


def q_values(tree: mctx.Tree, node: jax.Array) -> jax.Array:
    """Returns the Q-values `[A]` of a node for mctx's PUCT, which adds the other term; -inf for illegal actions."""
    prior = jax.nn.softmax(tree.children_prior_logits[node])
    is_visited = tree.children_visits[node] > 0
    unvisited = unvisited_value(tree.node_values[node], prior, is_visited)
    return jnp.where(prior > 0, jnp.where(is_visited, tree.qvalues(node), unvisited), -jnp.inf)
