"""Networks: flax modules from node features to prior logits and a value.

A network is a flax module whose only variables are parameters. `network.init(key, nodes)` creates them.
`network.apply(params, nodes, edges)` maps node features `[B, V, F]`, and the edges of each position if they vary, else
None (`Game.edges`), to prior logits `[B, A]`, including illegal actions, and the output of the value head, which
`values.expected_value` turns into values `[B]` from the perspective of the player to move.
A network with auxiliary heads also returns their predictions, by name, on `apply(..., with_auxiliary=True)`.
"""

import dataclasses
import pkgutil
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from alphagat.graphs.topology import Topology
from alphagat.network_traits import DENSE, MAY_FUSE, NETWORK_TRAITS
from alphagat.networks.auxiliary_heads import AUXILIARY_HEADS
from alphagat.networks.values import Support


class Network(Protocol):
    """What the search and the learner need of a network: a flax module, a `FusedNetwork` or a `PipelinedNetwork`."""

    @property
    def value_support(self) -> Support | None:
        """The returns over which a categorical value head predicts; None for a value in (-1, 1)."""
        ...

    def init(self, key: jax.Array, nodes: jax.Array, /) -> Any:
        """Creates the parameters."""
        ...

    def apply(self, params: Any, nodes: jax.Array, edges: jax.Array | None = None, /, **options: Any) -> Any:
        """Returns prior logits, the output of the value head and, if requested, the auxiliary predictions."""
        ...


def make_network(
    topology: Topology,
    *,
    name: str,
    precision: str = "float32",
    value_support: Support | None = None,
    **options: Any,
) -> Network:
    """Returns the network called `name` in `network_traits.NETWORK_TRAITS`, made of XLA's operations; `backend` fused
    and auto mean the dense one.

    Args:
      precision: the dtype of the blocks: float32, bfloat16 or float16. Parameters, softmaxes and the outputs of the
        heads are float32 in any case.
      options: the other fields of `NetworkConfig`; a network takes those that are also fields of its class.
        `NAME_head=True` adds the auxiliary head called NAME.
    """
    options["dtype"] = jnp.dtype(precision)
    options["auxiliary_heads"] = tuple(head for head in AUXILIARY_HEADS if options.get(f"{head}_head"))
    network_class = pkgutil.resolve_name(NETWORK_TRAITS[name].implementation)
    accepted = {field.name for field in dataclasses.fields(network_class)}
    chosen = {option: value for option, value in options.items() if option in accepted}
    if chosen.get("backend") in MAY_FUSE:
        chosen["backend"] = DENSE
    return network_class(topology, value_support=value_support, **chosen)
