"""Applies random symmetries of the board to training examples."""

import jax
import jax.numpy as jnp

from alphagat.games.base import Symmetries


def random_symmetries(key: jax.Array, batch_size: int, symmetries: Symmetries) -> jax.Array:
    """Draws one symmetry per example: `[B]` int32."""
    return jax.random.randint(key, (batch_size,), 0, symmetries.num_symmetries)


def permute_nodes(nodes: jax.Array, index: jax.Array, symmetries: Symmetries) -> jax.Array:
    """Applies symmetry `index` `[B]` to node features `[B, V, F]`."""
    permutations = jnp.asarray(symmetries.node_permutations)[index]
    return jnp.take_along_axis(nodes, permutations[:, :, None], axis=1)


def permute_edges(edges: jax.Array | None, index: jax.Array, symmetries: Symmetries) -> jax.Array | None:
    """Applies symmetry `index` `[B]` to edges `[B, V, V, R]`, if positions have edges of their own."""
    if edges is None:
        return None
    permutations = jnp.asarray(symmetries.node_permutations)[index]
    by_receiver = jnp.take_along_axis(edges, permutations[:, :, None, None], axis=1)
    return jnp.take_along_axis(by_receiver, permutations[:, None, :, None], axis=2)


def permute_actions(values: jax.Array, index: jax.Array, symmetries: Symmetries) -> jax.Array:
    """Applies symmetry `index` `[B]` to one value per action, `[B, A]`: a policy or a mask."""
    return jnp.take_along_axis(values, jnp.asarray(symmetries.action_permutations)[index], axis=1)
