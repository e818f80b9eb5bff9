"""A faster backup for mctx's search.

mctx applies `vmap` to the loop that carries a value to the root. JAX then copies every table of the trees in each
step of the loop, because it may have ended for some trees. With the 1,858 actions of chess, these copies take 85 % of
a search of 256 simulations. Here one loop serves all trees, also those of a batch of searches under `vmap`; a tree that
has reached its root writes outside its tables, where JAX drops what it writes. The results are the same.
"""

# mctx's dataclasses are too wide for a type checker.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportIndexIssue=false

import contextlib
import threading
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import mctx
from mctx._src import search as mctx_search

_replacing = threading.RLock()


class Edges(NamedTuple):
    """The tables of mctx's tree that a backup reads; B trees with N nodes and A actions.

    Attributes:
      parents: `[B, N]` int32.
      action_from_parent: `[B, N]` int32.
      children_rewards: `[B, N, A]`.
      children_discounts: `[B, N, A]`.
    """

    parents: jax.Array
    action_from_parent: jax.Array
    children_rewards: jax.Array
    children_discounts: jax.Array


class Statistics(NamedTuple):
    """The tables of mctx's tree that a backup changes.

    Attributes:
      node_values: `[B, N]`.
      node_visits: `[B, N]` int32.
      children_values: `[B, N, A]`.
      children_visits: `[B, N, A]` int32.
    """

    node_values: jax.Array
    node_visits: jax.Array
    children_values: jax.Array
    children_visits: jax.Array


def back_up(tree: mctx.Tree, leaves: jax.Array) -> mctx.Tree:
    """Adds the values of the nodes `leaves` `[B]` to the statistics of all nodes and edges above them."""
    edges, statistics = (kind(*(getattr(tree, name) for name in kind._fields)) for kind in (Edges, Statistics))
    return tree.replace(**_rise_to_roots(edges, statistics, leaves.astype(jnp.int32))._asdict())


@jax.custom_batching.custom_vmap
def _rise_to_roots(edges: Edges, statistics: Statistics, leaves: jax.Array) -> Statistics:
    """Returns the statistics after a backup from `leaves` `[B]`."""
    rows = jnp.arange(len(leaves))
    root, outside = mctx.Tree.ROOT_INDEX, edges.parents.shape[1]

    def rise(carry: tuple[jax.Array, jax.Array, Statistics]) -> tuple[jax.Array, jax.Array, Statistics]:
        node, result, old = carry
        parent, action = edges.parents[rows, node], edges.action_from_parent[rows, node]
        result = edges.children_rewards[rows, parent, action] + edges.children_discounts[rows, parent, action] * result
        visits = old.node_visits[rows, parent]
        mean = (old.node_values[rows, parent] * visits + result) / (visits + 1.0)
        at = jnp.where(node == root, outside, parent)
        new = Statistics(
            old.node_values.at[rows, at].set(mean, mode="drop"),
            old.node_visits.at[rows, at].set(visits + 1, mode="drop"),
            old.children_values.at[rows, at, action].set(old.node_values[rows, node], mode="drop"),
            old.children_visits.at[rows, at, action].add(1, mode="drop"),
        )
        return jnp.where(node == root, node, parent), result, new

    start = leaves, statistics.node_values[rows, leaves], statistics
    _, _, statistics = jax.lax.while_loop(lambda carry: (carry[0] != root).any(), rise, start)
    return statistics


@_rise_to_roots.def_vmap
def _rise_in_one_batch(axis_size: int, is_batched: list, *arguments) -> tuple[Statistics, Statistics]:
    """Merges the new axis with that of the trees, so that the loop still needs no copies."""

    def merge(x: jax.Array, is_batched: bool) -> jax.Array:
        batches = x if is_batched else jnp.broadcast_to(x, (axis_size, *x.shape))
        return batches.reshape(-1, *batches.shape[2:])

    statistics = _rise_to_roots(*jax.tree.map(merge, arguments, tuple(is_batched)))
    separate = jax.tree.map(lambda x: x.reshape(axis_size, -1, *x.shape[1:]), statistics)
    return separate, jax.tree.map(lambda _: True, separate)


@contextlib.contextmanager
def faster_backup() -> Iterator[None]:
    """Makes the searches of mctx that are traced in this block use `back_up`; one thread at a time."""
    with _replacing:
        original, mctx_search.backward = mctx_search.backward, back_up
        try:
            yield
        finally:
            mctx_search.backward = original
