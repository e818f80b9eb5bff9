"""Networks with a layout of their own for the parameters."""

import abc
import dataclasses
from typing import Any

import jax

from alphagat.networks.gat import GraphAttentionNetwork
from alphagat.networks.values import Support


@dataclasses.dataclass(frozen=True)
class PlacedNetwork(abc.ABC):
    """Computes `network` in another way, from the same parameters."""

    network: GraphAttentionNetwork

    @property
    def value_support(self) -> Support | None:
        return self.network.value_support

    def init(self, key: jax.Array, nodes: jax.Array) -> Any:
        return self.network.init(key, nodes)

    @abc.abstractmethod
    def apply(self, params: Any, nodes: jax.Array, edges: jax.Array | None = None, /, **options: Any) -> Any:
        """Returns `network.apply(params, nodes, edges)`.

        `params` are those of `init`, or those of `place`, for which no gradient is defined.
        """

    @abc.abstractmethod
    def place(self, params: Any) -> Any:
        """Moves the parameters to their layout once, for many calls of `apply`."""


def place_params(network: Any, params: Any) -> Any:
    """Returns the parameters in the layout of the network; unchanged if it has none of its own."""
    return network.place(params) if isinstance(network, PlacedNetwork) else params
