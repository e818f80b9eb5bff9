"""Heads of the auxiliary targets that `alphagat.selfplay.auxiliary_targets` declares."""

from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp

from alphagat.graphs.topology import Topology
from alphagat.networks.dense import Dense
from alphagat.networks.heads import at_least_float32


class OwnershipHead(nn.Module):
    """Predicts who holds each node at the end of the game (Wu 2019, section 4.1, "Ownership").

    Call: nodes `[B, V, D]` -> `[B, V]` float32 in (-1, 1), 1 for the player to move.
    """

    dtype: jnp.dtype = jnp.dtype("float32")

    @nn.compact
    def __call__(self, nodes: jax.Array) -> jax.Array:
        hidden = Dense(nodes.shape[-1], dtype=self.dtype, name="hidden")(nodes)
        return jnp.tanh(at_least_float32(Dense(1, dtype=self.dtype, name="ownership")(nn.silu(hidden))[..., 0]))


# Target name: constructor of its head from the board and the dtype. The network stores the parameters of a
# head under the name of its target.
AUXILIARY_HEADS: dict[str, Callable[[Topology, jnp.dtype], nn.Module]] = {
    "ownership": lambda topology, dtype: OwnershipHead(dtype),
}
