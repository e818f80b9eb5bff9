"""Which configs, boards and weights fit together."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from alphagat.config import Config, NetworkConfig
from alphagat.errors import UserError
from alphagat.games.base import Game
from alphagat.network_traits import FIELDS_OF_A_MESSAGE, NETWORK_TRAITS, kinds_of_blocks, messages_of, networks_with

# Fields of `config.network` that change neither the shape nor the meaning of a parameter.
NOT_OF_THE_WEIGHTS = "backend", "precision", "remat"
# Fields without effect in networks without messages.
OF_MESSAGES = *(field for fields in FIELDS_OF_A_MESSAGE.values() for field in fields), "mlp_ratio", "value_pools"


def check_one_family(config: Config, games: Sequence[Game]) -> None:
    """Checks that one network can play all boards.

    Raises:
      UserError: the boards belong to several families, or differ in size and the network fits one size only, or their
        edges vary and the network has none.
    """
    names = ", ".join(game.name for game in games)
    families = [game.family for game in games]
    if len(set(families)) == 1 and len({game.num_features for game in games}) > 1:
        numbers = ", ".join(str(game.num_features) for game in games)
        raise UserError(
            f"config.boards: {names} have {numbers} features per node; boards of one family must have the same features"
        )
    if len({(game.topology.vocabulary, game.value_support) for game in games}) > 1:
        raise UserError(
            f"config.boards: {names} are of the families {', '.join(families)}; boards of one run share weights, so "
            "take boards of one family, with one vocabulary and value_support"
        )
    if not fits_sizes(config, games):
        raise UserError(
            f"config.network.name={config.network.name!r} has weights for one size of board, but config.boards has "
            f"{names}; set it to {networks_with('plays_any_size')}, or take one board"
        )
    if games[0].topology.edges_vary and not NETWORK_TRAITS[config.network.name].reads_edges:
        raise UserError(
            f"config.network.name={config.network.name!r} sees no edges, but those of {names} differ between "
            f"positions; set it to {networks_with('reads_edges')}"
        )


def fits_sizes(config: Config, games: Sequence[Game]) -> bool:
    """Returns whether one network of `config` can play boards of all these sizes."""
    shapes = {(game.topology.grid_shape, game.topology.num_nodes, game.num_actions) for game in games}
    return NETWORK_TRAITS[config.network.name].plays_any_size or len(shapes) == 1


def differing_fields(ours: NetworkConfig, theirs: NetworkConfig) -> list[str]:
    """Returns the names of the fields that give the parameters of two networks different shapes or meanings."""
    one, other = _fields_of_the_weights(ours), _fields_of_the_weights(theirs)
    differing = [name for name in one | other if getattr(ours, name) != getattr(theirs, name)]
    same_blocks = one.get("blocks") == other.get("blocks")
    return [name for name in differing if name != "blocks" or not same_blocks]


def _fields_of_the_weights(network: NetworkConfig) -> dict[str, Any]:
    """Returns the fields of `config.network` that matter for its parameters; `blocks` is the kind of each block."""
    found = {name: value for name, value in dataclasses.asdict(network).items() if name not in NOT_OF_THE_WEIGHTS}
    blocks = kinds_of_blocks(found.pop("blocks"), network.num_blocks)
    if not NETWORK_TRAITS[network.name].passes_messages:
        return {name: value for name, value in found.items() if name not in OF_MESSAGES}
    found["blocks"] = blocks
    unused = [
        name for message in FIELDS_OF_A_MESSAGE.keys() - messages_of(blocks) for name in FIELDS_OF_A_MESSAGE[message]
    ]
    return {name: value for name, value in found.items() if name not in unused}
