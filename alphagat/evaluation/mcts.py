"""Plain Monte-Carlo tree search (UCT, Kocsis & Szepesvari 2006), batched on the device: a baseline without a network.

It does not use mctx. Its trees take 16 bytes per action, those of mctx 24. All games descend in lockstep, and a
simulation touches only the nodes on its path. mctx's own backup, which `search.backup` replaces, copies the whole tree
at every step: over 90% of the time with random rollouts and a thousand simulations.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from alphagat.evaluation.rollout import action_noise, rollout
from alphagat.games.base import Game
from alphagat.games.transition import transition
from alphagat.search.memory import check_trees, state_bytes

EXPLORATION = 1.4
UNVISITED = -1
EDGE_BYTES = 16  # of a tree, per node and action
ILLEGAL = -1.0


class Tree(NamedTuple):
    """The trees of B games; node 0 is the root, node `i` was added by simulation `i - 1`.

    Attributes:
      states: `[N, B, ...]`.
      order: `[N, B, A]` float32 in [0, 1): legal actions are first tried from the largest down; `ILLEGAL` elsewhere.
      children: `[N, B, A]` int32, the node after the action, or `UNVISITED`.
      visits: `[N, B, A]` float32, number of simulations through the action.
      sums: `[N, B, A]` float32, sum of their results in [-1, 1] for the node's player to move.
      rewards: `[N, B]` float32, of the move that led to the node, for the player who made it.
      discounts: `[N, B]` float32, of the same move: -1, +1 if the same player moves again, 0 at the end.
    """

    states: Any
    order: jax.Array
    children: jax.Array
    visits: jax.Array
    sums: jax.Array
    rewards: jax.Array
    discounts: jax.Array


class Path(NamedTuple):
    """The edges of one simulation in each of B games: edge `d` is valid if `d < depth`.

    Attributes:
      nodes: `[D, B]` int32, the parent node of each edge.
      actions: `[D, B]` int32.
      depth: `[B]` int32, number of edges.
      leaf: `[B]` int32, the node after the last edge: a new one, or an existing terminal node.
    """

    nodes: jax.Array
    actions: jax.Array
    depth: jax.Array
    leaf: jax.Array


def tree_bytes(game: Game, num_simulations: int) -> float:
    """Returns the bytes of one game's tree."""
    return (num_simulations + 1) * (state_bytes(game) + EDGE_BYTES * game.num_actions)


def make_mcts(game: Game, num_simulations: int) -> Callable[[jax.Array, Any], Tree]:
    """Returns `search(key, states [B])`, which returns the trees after `num_simulations` simulations from each state.

    A simulation descends by `select_uct` until it leaves the tree, adds one node, plays one uniformly random game from
    there, and backs the result up. Illegal actions are never chosen. A simulation that reaches a terminal node
    in the tree backs up the exact result and adds no node. Terminal roots are not searched.

    `search` raises UserError if the trees do not fit into memory.
    """
    max_depth = min(num_simulations, game.max_plies)

    def search(key: jax.Array, states: Any) -> Tree:
        check_trees(len(states.terminated), num_simulations, tree_bytes(game, num_simulations))

        def simulate(index: jax.Array, tree: Tree) -> Tree:
            step_key, order_key, rollout_key = jax.random.split(jax.random.fold_in(key, index + 1), 3)
            path = _descend(tree, index + 1, max_depth)
            tree, leaf_states = _expand(game, tree, path, index + 1, step_key, order_key)
            return _backup(tree, path, rollout(game, rollout_key, leaf_states))

        tree = _plant(states, num_simulations + 1, jax.random.fold_in(key, 0))
        return jax.lax.fori_loop(0, num_simulations, simulate, tree)

    return search


def select_uct(order: jax.Array, visits: jax.Array, sums: jax.Array) -> jax.Array:
    """Chooses the `[B]` next actions of a simulation from `[B, A]` rows of the tree: UCB1 (Auer et al. 2002).

    Legal actions without a visit come first, in the node's random order. Then the maximum of
    `(Q(s, a) + 1) / 2 + 1.4 * sqrt(ln N(s) / N(s, a))`, where Q is the mean result for the player to move at s,
    in [-1, 1], so that a win counts 1, a draw 0.5 and a loss 0: the scale on which UCB1's constant is sqrt(2).
    `N(s) = sum_a N(s, a)`. (The same search on the scale [-1, 1] has the constant 2.8.)
    """
    safe_visits = jnp.maximum(visits, 1.0)
    total = jnp.maximum(visits.sum(axis=-1, keepdims=True), 1.0)
    scores = (sums / safe_visits + 1) / 2 + EXPLORATION * jnp.sqrt(jnp.log(total) / safe_visits)
    # The order breaks ties too; 100 is above every score.
    scores = jnp.where(visits == 0, 100.0 + order, scores + 1e-5 * order)
    return jnp.argmax(jnp.where(order >= 0, scores, -jnp.inf), axis=-1).astype(jnp.int32)


def most_visited(key: jax.Array, tree: Tree) -> jax.Array:
    """Returns the `[B]` most visited legal root actions, ties broken at random."""
    noise = jax.random.uniform(key, tree.visits[0].shape)
    return jnp.argmax(jnp.where(tree.order[0] >= 0, tree.visits[0] + noise, -1.0), axis=-1).astype(jnp.int32)


def _plant(states: Any, num_nodes: int, key: jax.Array) -> Tree:
    """Returns trees with only their roots."""
    batch_size, num_actions = states.legal_action_mask.shape
    edges = (num_nodes, batch_size, num_actions)
    return Tree(
        states=jax.tree.map(lambda x: jnp.zeros((num_nodes, *x.shape), x.dtype).at[0].set(x), states),
        order=jnp.full(edges, ILLEGAL).at[0].set(_draw_order(key, states)),
        children=jnp.full(edges, UNVISITED, jnp.int32),
        visits=jnp.zeros(edges),
        sums=jnp.zeros(edges),
        rewards=jnp.zeros(edges[:2]),
        discounts=jnp.zeros(edges[:2]),
    )


def _descend(tree: Tree, new_node: jax.Array, max_depth: int) -> Path:
    """Follows `select_uct` from the roots until every game reaches an unvisited action or a terminal node."""
    batch_size = tree.rewards.shape[1]
    games = jnp.arange(batch_size)

    def is_descending(carry: tuple) -> jax.Array:
        edge, active, _, _ = carry
        return (edge < max_depth) & active.any()

    def descend(carry: tuple) -> tuple:
        edge, active, node, path = carry
        action = select_uct(tree.order[node, games], tree.visits[node, games], tree.sums[node, games])
        child = tree.children[node, games, action]
        is_new = child == UNVISITED
        leaf = jnp.where(active, jnp.where(is_new, new_node, child), path.leaf)
        path = Path(path.nodes.at[edge].set(node), path.actions.at[edge].set(action), path.depth + active, leaf)
        active = active & ~is_new & ~tree.states.terminated[jnp.maximum(child, 0), games]
        return edge + 1, active, jnp.where(active, child, node), path

    zeros = jnp.zeros(batch_size, jnp.int32)
    empty = jnp.zeros((max_depth, batch_size), jnp.int32)
    start = (jnp.int32(0), ~tree.states.terminated[0], zeros, Path(empty, empty, zeros, zeros))
    return jax.lax.while_loop(is_descending, descend, start)[3]


def _expand(
    game: Game, tree: Tree, path: Path, new_node: jax.Array, step_key: jax.Array, order_key: jax.Array
) -> tuple[Tree, Any]:
    """Adds node `new_node` to every tree; also returns the `[B]` states at the leaves.

    If the path ends at an existing terminal node, the new node is not linked, and nothing reads it.
    """
    games = jnp.arange(len(path.leaf))
    last = jnp.maximum(path.depth - 1, 0)
    parent, action = path.nodes[last, games], path.actions[last, games]
    before = jax.tree.map(lambda x: x[parent, games], tree.states)
    after = jax.vmap(game.step)(before, action, jax.random.split(step_key, len(games)))
    reward, discount = jax.vmap(transition)(before, after)
    is_new = path.leaf == new_node
    tree = Tree(
        states=jax.tree.map(lambda x, y: x.at[new_node].set(y), tree.states, after),
        order=tree.order.at[new_node].set(_draw_order(order_key, after)),
        children=tree.children.at[parent, games, action].set(
            jnp.where(is_new, new_node, tree.children[parent, games, action])
        ),
        visits=tree.visits,
        sums=tree.sums,
        rewards=tree.rewards.at[new_node].set(reward),
        discounts=tree.discounts.at[new_node].set(discount),
    )
    # Repeating the move to an existing terminal leaf gives a terminal state again, for which the rollout returns 0.
    return tree, after


def _backup(tree: Tree, path: Path, value: jax.Array) -> Tree:
    """Adds the result to every edge of the path; `value` `[B]` is for the player to move at the leaf."""
    games = jnp.arange(len(value))

    def climb(step: jax.Array, carry: tuple) -> tuple:
        visits, sums, value, child = carry
        edge = path.depth.max() - 1 - step
        node, action, active = path.nodes[edge], path.actions[edge], edge < path.depth
        value = jnp.where(active, tree.rewards[child, games] + tree.discounts[child, games] * value, value)
        visits = visits.at[node, games, action].add(active.astype(jnp.float32))
        sums = sums.at[node, games, action].add(jnp.where(active, value, 0.0))
        return visits, sums, value, jnp.where(active, node, child)

    start = (tree.visits, tree.sums, value, path.leaf)
    visits, sums, _, _ = jax.lax.fori_loop(0, path.depth.max(), climb, start)
    return tree._replace(visits=visits, sums=sums)


def _draw_order(key: jax.Array, states: Any) -> jax.Array:
    legal = states.legal_action_mask  # [B, A]
    noise = action_noise(jax.random.bits(key, legal.shape[:1], jnp.uint32), legal.shape[-1])
    return jnp.where(legal, noise, ILLEGAL)
