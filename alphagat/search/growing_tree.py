"""The tree of the search of one position: a table of nodes that can be cut down to a subtree."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from alphagat.games.base import Game
from alphagat.search.compact import num_columns
from alphagat.search.evaluator import Evaluator, evaluate_states
from alphagat.search.memory import searched_state_bytes
from alphagat.search.tree import mask_illegal

EDGE_BYTES, NODE_BYTES = 20, 20  # of a `Tree`, per action and per node, without the state


class Tree(NamedTuple):
    """A search tree of one position; node 0 is the root, and nodes are in order of creation.

    Attributes:
      num_nodes: `[]` int32.
      states: `[N, ...]`.
      prior: `[N, A]` float32, 0 for exactly the illegal actions.
      raw_values: `[N]` float32, the network's value for the player to move; 0 at terminal nodes.
      parents: `[N]` int32.
      actions: `[N]` int32, the action that leads to the node.
      rewards: `[N]` float32, of that action for the player who moved.
      discounts: `[N]` float32, as in `games.transition`.
      children: `[N, A]` int32, -1 for none.
      visits: `[N, A]` int32, finished simulations through each action.
      sums: `[N, A]` float32, the sum of their results for the player to move.
      waiting: `[N, A]` int32, pending simulations; 0 between rounds.
    """

    num_nodes: jax.Array
    states: Any
    prior: jax.Array
    raw_values: jax.Array
    parents: jax.Array
    actions: jax.Array
    rewards: jax.Array
    discounts: jax.Array
    children: jax.Array
    visits: jax.Array
    sums: jax.Array
    waiting: jax.Array


def tree_bytes(game: Game, capacity: int) -> float:
    """Returns the bytes of a `Tree`."""
    return (capacity + 1) * (searched_state_bytes(game) + EDGE_BYTES * num_columns(game) + NODE_BYTES)


def plant(evaluate: Evaluator, params: Any, state: Any, num_nodes: int) -> Tree:
    """Makes a tree with only its root and capacity for `num_nodes`."""
    prior, value = evaluate_nodes(evaluate, params, jax.tree.map(lambda x: x[None], state))
    num_actions = prior.shape[1]

    def table(start: float, dtype: Any, *shape: int) -> jax.Array:
        return jnp.full((num_nodes, *shape), start, dtype)

    return Tree(
        num_nodes=jnp.int32(1),
        states=jax.tree.map(lambda x: jnp.zeros((num_nodes, *x.shape), x.dtype).at[0].set(x), state),
        prior=table(0, jnp.float32, num_actions).at[0].set(prior[0]),
        raw_values=table(0, jnp.float32).at[0].set(value[0]),
        parents=table(0, jnp.int32),
        actions=table(0, jnp.int32),
        rewards=table(0, jnp.float32),
        discounts=table(0, jnp.float32),
        children=table(-1, jnp.int32, num_actions),
        visits=table(0, jnp.int32, num_actions),
        sums=table(0, jnp.float32, num_actions),
        waiting=table(0, jnp.int32, num_actions),
    )


def find(tree: Tree, state: Any) -> jax.Array:
    """Returns the most visited node with this state; -1 if there is none."""
    alike = jax.tree.map(lambda x, y: (x == jnp.asarray(y)[None]).reshape(len(x), -1).all(axis=1), tree.states, state)
    is_state = functools.reduce(jnp.logical_and, jax.tree.leaves(alike)) & (
        jnp.arange(len(tree.parents)) < tree.num_nodes
    )
    visits = jnp.where(is_state, tree.visits.sum(axis=1), -1)
    return jnp.where(is_state.any(), visits.argmax(), -1)


def cut_out(tree: Tree, node: jax.Array) -> Tree:
    """Returns the subtree at a node, in the same order and with the same capacity."""
    rows = jnp.arange(len(tree.parents))

    def with_children(kept: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        more = kept[0] | (kept[0][tree.parents] & (rows < tree.num_nodes))
        return more, (more != kept[0]).any()

    is_kept, _ = jax.lax.while_loop(lambda kept: kept[1], with_children, (rows == node, jnp.bool_(True)))
    place = jnp.cumsum(is_kept) - 1
    order = jnp.argsort(~is_kept, stable=True)
    num_nodes = is_kept.sum(dtype=jnp.int32)

    def move(table: jax.Array, blank: float = 0, num_roots: int = 0) -> jax.Array:
        """Moves kept rows to the front, and resets the others and the first `num_roots` rows."""
        is_blank = (rows >= num_nodes) | (rows < num_roots)
        return jnp.where(is_blank.reshape(-1, *[1] * (table.ndim - 1)), jnp.asarray(blank, table.dtype), table[order])

    return Tree(
        num_nodes=num_nodes,
        states=jax.tree.map(move, tree.states),
        prior=move(tree.prior),
        raw_values=move(tree.raw_values),
        parents=move(place[tree.parents].astype(jnp.int32), num_roots=1),
        actions=move(tree.actions, num_roots=1),
        rewards=move(tree.rewards, num_roots=1),
        discounts=move(tree.discounts, num_roots=1),
        children=move(jnp.where(tree.children < 0, -1, place[tree.children]).astype(jnp.int32), blank=-1),
        visits=move(tree.visits),
        sums=move(tree.sums),
        waiting=move(tree.waiting),
    )


def mean_results(tree: Tree) -> jax.Array:
    return tree.sums / jnp.maximum(tree.visits, 1)


def root_state(tree: Tree) -> Any:  # a batch of one
    return jax.tree.map(lambda x: x[:1], tree.states)


def evaluate_nodes(evaluate: Evaluator, params: Any, states: Any) -> tuple[jax.Array, jax.Array]:
    """Returns priors `[K, A]`, 0 for exactly the illegal actions, and values `[K]`, 0 for terminal states."""
    evaluation = evaluate_states(evaluate, params, states)
    prior = jax.nn.softmax(mask_illegal(evaluation.prior_logits.astype(jnp.float32), states))
    prior = jnp.where(states.legal_action_mask, jnp.maximum(prior, jnp.finfo(jnp.float32).tiny), 0.0)
    return prior, jnp.where(states.terminated, 0.0, evaluation.value).astype(jnp.float32)
