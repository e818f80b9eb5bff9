"""What each network can do, in a module without JAX, so that a config is validated before JAX loads."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkTraits:
    """Declares what a network can do.

    Attributes:
      plays_any_size: the weights fit every board of the family, not only one size.
      has_attention: it attends along the edges with `num_heads` heads, which must divide its width.
      supports_model_parallel: the devices of the `model` axis can share its layers.
      supports_stages: its blocks can run as a pipeline along the `stage` axis.
      supports_auxiliary_heads: it can predict auxiliary targets.
    """

    plays_any_size: bool = False
    has_attention: bool = False
    supports_model_parallel: bool = False
    supports_stages: bool = False
    supports_auxiliary_heads: bool = False


# A network needs an entry here and its class in `alphagat.networks.NETWORKS`.
NETWORK_TRAITS = {
    "gat": NetworkTraits(
        plays_any_size=True,
        has_attention=True,
        supports_model_parallel=True,
        supports_stages=True,
        supports_auxiliary_heads=True,
    ),
    "resnet": NetworkTraits(),
}


def networks_with(trait: str) -> str:
    """Names the networks with a trait, as an error message lists them: `'gat'`."""
    return " or ".join(repr(name) for name, traits in NETWORK_TRAITS.items() if getattr(traits, trait))
