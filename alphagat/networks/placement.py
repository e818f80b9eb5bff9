"""The layout of parameters for many evaluations."""

from typing import Any

from alphagat.networks.fused.network import FusedNetwork
from alphagat.networks.pipeline import PipelinedNetwork


def place_params(network: Any, params: Any) -> Any:
    """Returns the parameters in the layout of the network, once for many calls of `apply` without gradients."""
    return network.place(params) if isinstance(network, (FusedNetwork, PipelinedNetwork)) else params
