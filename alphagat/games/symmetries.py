"""The symmetries of a board, applied to batches of examples."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.graphs.topology import Topology


@dataclasses.dataclass(frozen=True)
class Symmetries:
    """Permutations that map positions to equivalent ones; row 0 is the identity.

    The transformed features are `features[node_permutations[s]]`, and the transformed policy is
    `policy[action_permutations[s]]`: both gather. A symmetry may exchange the players (transposition in Hex),
    because features are from the perspective of the player to move: it holds for features, policy and value, not for
    states. Edges of a position are transformed like the features, in both of their nodes.

    Attributes:
      node_permutations: `[S, V]` int32.
      action_permutations: `[S, A]` int32.
    """

    node_permutations: np.ndarray
    action_permutations: np.ndarray

    @property
    def num_symmetries(self) -> int:
        return len(self.node_permutations)


def symmetries_of(topology: Topology, node_permutations: np.ndarray) -> Symmetries:
    """Derives the permutations of actions from those of nodes, `[S, V]`; the kind of an action stays the same."""
    actions = zip(*(x.tolist() for x in (topology.action_senders, topology.action_receivers, topology.action_kinds)))
    numbers = {action: number for number, action in enumerate(actions)}
    action_permutations = [
        [numbers[node[sender], node[receiver], kind] for sender, receiver, kind in numbers]
        for node in node_permutations.tolist()
    ]
    return Symmetries(node_permutations, np.array(action_permutations, np.int32))


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
