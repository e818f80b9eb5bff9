"""What each network can do, in a module without JAX, so that a config is validated before JAX loads."""

import dataclasses
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkTraits:
    """Declares what a network can do.

    Attributes:
      implementation: `module:class` of the flax module.
      plays_any_size: the weights fit every board of the family, not only one size.
      reads_edges: it plays boards whose edges differ between positions (`Game.edges`).
      passes_messages: it is made of `network.blocks`, like the GAT, with `num_heads` heads and `mixing_groups` groups,
        which must divide its width.
      supports_model_parallel: the devices of the `model` axis can share its layers.
      supports_stages: its blocks can run as a pipeline along the `stage` axis.
      supports_auxiliary_heads: it can predict auxiliary targets.
    """

    implementation: str
    plays_any_size: bool = False
    reads_edges: bool = False
    passes_messages: bool = False
    supports_model_parallel: bool = False
    supports_stages: bool = False
    supports_auxiliary_heads: bool = False


DENSE, FUSED, AUTO = "dense", "fused", "auto"
BACKENDS = DENSE, "jraph", FUSED, AUTO  # of `network.backend`
MAY_FUSE = FUSED, AUTO
BLOCK_KINDS = "attention", "mixing", "mixing+attention"  # of `network.blocks`
# By kind of message: the fields of `config.network` without effect in blocks that do not pass it, and the one of them
# that divides the width.
FIELDS_OF_A_MESSAGE = {"attention": ("num_heads", "key_size"), "mixing": ("mixing_groups",)}
DIVIDES_WIDTH = {"attention": "num_heads", "mixing": "mixing_groups"}


def messages_of(kinds: Iterable[str]) -> set[str]:
    """Returns the kinds of messages, attention and mixing, that blocks of these kinds pass."""
    return {message for kind in kinds for message in kind.split("+")}


def kinds_of_blocks(blocks: tuple[str, ...], num_blocks: int) -> list[str]:
    """Returns the kind of each block: those of `network.blocks`, repeated, so that the last block has the last kind."""
    return [blocks[(number - num_blocks) % len(blocks)] for number in range(num_blocks)]


# By `network.name`. A new network needs its module and an entry here.
NETWORK_TRAITS = {
    "gat": NetworkTraits(
        implementation="alphagat.networks.gat:GraphAttentionNetwork",
        plays_any_size=True,
        reads_edges=True,
        passes_messages=True,
        supports_model_parallel=True,
        supports_stages=True,
        supports_auxiliary_heads=True,
    ),
    "resnet": NetworkTraits(implementation="alphagat.networks.resnet:ResidualNetwork"),
    "resnet_pool": NetworkTraits(implementation="alphagat.networks.resnet:PooledResidualNetwork"),
}


def networks_with(trait: str) -> str:
    """Names the networks with a trait, as an error message lists them: `'gat'`."""
    return " or ".join(repr(name) for name, traits in NETWORK_TRAITS.items() if getattr(traits, trait))
