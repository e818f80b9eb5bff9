"""A faster backup for mctx's search.

mctx applies `vmap` to the loop that carries a value to the root. JAX then copies every table of the trees in each
step of the loop, because it may have ended for some trees. With the 1,858 actions of chess, these copies take 85 % of
a search of 256 simulations. Here one loop serves all trees; a tree that has reached its root writes outside its
tables, where JAX drops what it writes. The results are the same.
"""

# mctx's dataclasses are too wide for a type checker.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false

import jax
import jax.numpy as jnp
import mctx
from mctx._src import search as mctx_search


def back_up(tree: mctx.Tree, leaves: jax.Array) -> mctx.Tree:
    """Adds the values of the nodes `leaves` `[B]` to the statistics of all nodes and edges above them."""
    rows = jnp.arange(len(leaves))
    outside = tree.node_values.shape[1]

    def rise(carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        node, result, node_values, node_visits, children_values, children_visits = carry
        parent, action = tree.parents[rows, node], tree.action_from_parent[rows, node]
        result = tree.children_rewards[rows, parent, action] + tree.children_discounts[rows, parent, action] * result
        visits = node_visits[rows, parent]
        mean = (node_values[rows, parent] * visits + result) / (visits + 1.0)
        at = jnp.where(node == tree.ROOT_INDEX, outside, parent)
        return (
            jnp.where(node == tree.ROOT_INDEX, node, parent),
            result,
            node_values.at[rows, at].set(mean, mode="drop"),
            node_visits.at[rows, at].set(visits + 1, mode="drop"),
            children_values.at[rows, at, action].set(node_values[rows, node], mode="drop"),
            children_visits.at[rows, at, action].add(1, mode="drop"),
        )

    leaves = leaves.astype(jnp.int32)
    start = (
        leaves,
        tree.node_values[rows, leaves],
        tree.node_values,
        tree.node_visits,
        tree.children_values,
        tree.children_visits,
    )
    _, _, node_values, node_visits, children_values, children_visits = jax.lax.while_loop(
        lambda carry: (carry[0] != tree.ROOT_INDEX).any(), rise, start
    )
    return tree.replace(
        node_values=node_values,
        node_visits=node_visits,
        children_values=children_values,
        children_visits=children_visits,
    )


def install_backup() -> None:
    """Makes all searches of mctx in this process use `back_up`."""
    mctx_search.backward = back_up
