"""PUCT search of one position that evaluates several leaves per network call.

The other searches fill a device with many positions; this one serves a player with a single position. Leaves are
selected one after another. Pending simulations count as visits but not yet as values: WU-UCT (Liu et al. 2020, "Watch
the unobserved", equation 4). A simulation that reaches a pending leaf is dropped; its pending visits remain until the
round ends and steer later simulations elsewhere. The score of an action is that of `search.puct`, whose visits include
pending ones.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from alphagat.errors import UserError
from alphagat.games.base import Game
from alphagat.games.states import is_deterministic_duel
from alphagat.games.transition import transition
from alphagat.search.compact import (
    CompactGame,
    CompactState,
    columns_of,
    is_compact,
    make_compact_evaluator,
    spread,
    widen,
)
from alphagat.search.evaluator import Evaluator
from alphagat.search.growing_tree import (
    Tree,
    cut_out,
    evaluate_nodes,
    find,
    mean_results,
    plant,
    root_state,
    tree_bytes,
)
from alphagat.search.memory import check_trees
from alphagat.search.puct import EXPLORATION, EXPLORATION_BASE, unvisited_value
from alphagat.search.tree import SearchOutput, root_statistics


class Leaves(NamedTuple):
    """The leaves of the `[K]` simulations of a round.

    Attributes:
      nodes: int32, the leaf; 0 for a simulation that was not started.
      is_counted: bool, False for dropped simulations.
      is_new: bool, whether the node needs its state and value.
    """

    nodes: jax.Array
    is_counted: jax.Array
    is_new: jax.Array


class GrowingSearch(NamedTuple):
    """Pure functions on one tree, which the caller compiles; a tree can be grown repeatedly.

    Attributes:
      start: `start(params, state) -> Tree` evaluates one non-terminal state.
      resume: `resume(params, tree, state) -> Tree` starts from the state but keeps its subtree of `tree`, at any depth,
        with the values that earlier `params` gave; a state that the tree does not have starts a new one.
      grow: `grow(params, tree, num_simulations, limit) -> Tree` runs whole rounds until the root has at least
        `num_simulations`, but at most `limit` or `capacity` (both `[]` int32). Repeated calls continue the same tree.
      read: `read(tree) -> SearchOutput` of a batch of one: the most visited move (ties: the best value), visit shares,
        and the mean over the root's evaluation and the simulations.
      prior: `prior(tree) -> [1, A]`, the network's policy at the root.
    """

    start: Callable[[Any, Any], Tree]
    resume: Callable[[Any, Tree, Any], Tree]
    grow: Callable[[Any, Tree, Any, Any], Tree]
    read: Callable[[Tree], SearchOutput]
    prior: Callable[[Tree], jax.Array]


def make_growing_search(
    game: Game,
    evaluate: Evaluator,
    *,
    capacity: int,
    num_leaves: int,
    discount: float = 1.0,
) -> GrowingSearch:
    """Makes the functions of a search, as described in the module's docstring.

    Args:
      capacity: the maximum number of simulations of a tree.
      num_leaves: K, leaves per network call.
      discount: per move, as in `search.make_search`.

    Raises:
      UserError: the game has chance moves or is not for two players, or the tree does not fit into memory.
    """
    if not is_deterministic_duel(game):
        raise UserError(
            f"board {game.name}: this search needs a game for two players without chance; take another board"
        )
    check_trees(1, capacity, tree_bytes(game, capacity))

    rules, compact = game, lambda state: state
    if is_compact(game):
        rules, evaluate = CompactGame(game), make_compact_evaluator(evaluate)
        compact = rules.compact

    def start(params: Any, state: Any) -> Tree:
        return plant(evaluate, params, compact(state), capacity + 1)

    def resume(params: Any, tree: Tree, state: Any) -> Tree:
        node = find(tree, compact(state))
        return jax.lax.cond(node < 0, lambda: start(params, state), lambda: cut_out(tree, node))

    def grow(params: Any, tree: Tree, num_simulations: Any, limit: Any) -> Tree:
        limit = jnp.minimum(limit, capacity)
        target = jnp.minimum(num_simulations, limit)

        def play_round(tree: Tree) -> Tree:
            tree, leaves = _select_leaves(tree, num_leaves, limit - tree.visits[0].sum())
            return _back_up(_expand(rules, evaluate, params, tree, leaves, discount), leaves)

        return jax.lax.while_loop(lambda tree: tree.visits[0].sum() < target, play_round, tree)

    return GrowingSearch(start, resume, grow, read, read_prior)


def read(tree: Tree) -> SearchOutput:
    """Implements `GrowingSearch.read`."""
    visits, values = tree.visits[0], mean_results(tree)
    most = (visits == visits.max()) & (tree.prior[0] > 0)
    # Without simulations, the prior decides.
    merit = jnp.where(visits > 0, values[0], tree.prior[0])
    action = jnp.where(most, merit, -jnp.inf).argmax().astype(jnp.int32)
    total = visits.sum()
    shares = jnp.where(total > 0, visits / jnp.maximum(total, 1), tree.prior[0])
    value = (tree.raw_values[0] + tree.sums[0].sum()) / (1 + total)
    discounts = tree.discounts[tree.children]
    tables = tree.visits, values, discounts, tree.children, columns_of(tree.states)
    root = root_statistics(*jax.tree.map(lambda x: x[None], tables))
    output = SearchOutput(action[None], shares[None], value[None], root)
    return widen(output, root_state(tree)) if isinstance(tree.states, CompactState) else output


def read_prior(tree: Tree) -> jax.Array:
    """Implements `GrowingSearch.prior`."""
    prior = tree.prior[:1]
    return spread(prior, root_state(tree), 0) if isinstance(tree.states, CompactState) else prior


def _best_action(tree: Tree, node: jax.Array) -> jax.Array:
    prior, visits, sums = tree.prior[node], tree.visits[node], tree.sums[node]  # [A] each
    taken = visits + tree.waiting[node]
    total = 1 + taken.sum()
    mean = (tree.raw_values[node] + sums.sum()) / (1 + visits.sum())
    values = jnp.where(visits > 0, sums / jnp.maximum(visits, 1), unvisited_value(mean, prior, taken > 0))
    rate = EXPLORATION + jnp.log((1 + total + EXPLORATION_BASE) / EXPLORATION_BASE)
    scores = values + rate * prior * jnp.sqrt(total) / (1 + taken)
    return jnp.where(prior > 0, scores, -jnp.inf).argmax().astype(jnp.int32)


def _select_leaves(tree: Tree, num_leaves: int, at_most: jax.Array) -> tuple[Tree, Leaves]:
    """Descends `min(num_leaves, at_most)` times from the root, and reserves rows for the new nodes."""
    first_new, capacity = tree.num_nodes, len(tree.parents)

    def walk(number: jax.Array, carry: tuple[Tree, Leaves]) -> tuple[Tree, Leaves]:
        tree, leaves = carry

        def descend(step: tuple) -> tuple:
            node, _, waiting, _ = step
            action = _best_action(tree._replace(waiting=waiting), node)
            child = tree.children[node, action]
            goes_on = (child >= 0) & (child < first_new) & ~tree.states.terminated[child]
            waiting = waiting.at[node, action].add(1)
            return jnp.where(goes_on, child, node), action, waiting, goes_on

        start = (jnp.int32(0), jnp.int32(0), tree.waiting, number < at_most)
        node, action, waiting, _ = jax.lax.while_loop(lambda step: step[3], descend, start)
        is_made = number < at_most
        child = tree.children[node, action]
        is_new = is_made & (child < 0)
        leaf = jnp.where(is_new, tree.num_nodes, child)
        row = jnp.where(is_new, leaf, capacity)  # outside: dropped
        tree = tree._replace(
            num_nodes=tree.num_nodes + is_new,
            parents=tree.parents.at[row].set(node, mode="drop"),
            actions=tree.actions.at[row].set(action, mode="drop"),
            children=tree.children.at[jnp.where(is_new, node, capacity), action].set(leaf, mode="drop"),
            waiting=waiting,
        )
        found = Leaves(jnp.where(is_made, leaf, 0), is_made & (is_new | (child < first_new)), is_new)
        return tree, jax.tree.map(lambda all_, one: all_.at[number].set(one), leaves, found)

    none = jnp.zeros(num_leaves, bool)
    leaves = Leaves(jnp.zeros(num_leaves, jnp.int32), none, none)
    return jax.lax.fori_loop(0, num_leaves, walk, (tree, leaves))


def _expand(
    game: Game | CompactGame, evaluate: Evaluator, params: Any, tree: Tree, leaves: Leaves, discount: float
) -> Tree:
    """Plays the moves to the new nodes and evaluates all of them in one batch."""
    rows = jnp.where(leaves.is_new, leaves.nodes, 0)
    before = jax.tree.map(lambda x: x[tree.parents[rows]], tree.states)
    keys = jax.random.split(jax.random.key(0), len(rows))  # unused: the game is deterministic
    after = jax.vmap(game.step)(before, tree.actions[rows], keys)
    rewards, discounts = jax.vmap(functools.partial(transition, per_move=discount))(before, after)
    prior, values = evaluate_nodes(evaluate, params, after)
    rows = jnp.where(leaves.is_new, leaves.nodes, len(tree.parents))  # outside: dropped

    def put(table: jax.Array, new: jax.Array) -> jax.Array:
        return table.at[rows].set(new, mode="drop")

    return tree._replace(
        states=jax.tree.map(put, tree.states, after),
        prior=put(tree.prior, prior),
        raw_values=put(tree.raw_values, values),
        rewards=put(tree.rewards, rewards),
        discounts=put(tree.discounts, discounts),
    )


def _back_up(tree: Tree, leaves: Leaves) -> Tree:
    """Backs up the values of all leaves at once, one level of the tree at a time."""

    def rise(carry: tuple) -> tuple:
        nodes, values, visits, sums, waiting = carry
        parents, actions = tree.parents[nodes], tree.actions[nodes]
        values = tree.rewards[nodes] + tree.discounts[nodes] * values
        rows = jnp.where(nodes > 0, parents, len(tree.parents))  # outside: dropped
        visits = visits.at[rows, actions].add(leaves.is_counted.astype(jnp.int32), mode="drop")
        sums = sums.at[rows, actions].add(jnp.where(leaves.is_counted, values, 0.0), mode="drop")
        waiting = waiting.at[rows, actions].add(-1, mode="drop")
        return jnp.where(nodes > 0, parents, 0), values, visits, sums, waiting

    start = (leaves.nodes, tree.raw_values[leaves.nodes], tree.visits, tree.sums, tree.waiting)
    _, _, visits, sums, waiting = jax.lax.while_loop(lambda carry: (carry[0] > 0).any(), rise, start)
    return tree._replace(visits=visits, sums=sums, waiting=waiting)
