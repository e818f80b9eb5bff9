"""Builds networks and searches from a config."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from alphagat.config import Config, NetworkConfig
from alphagat.errors import UserError
from alphagat.games.base import Game
from alphagat.network_traits import MAY_FUSE, NETWORK_TRAITS, kinds_of_blocks, messages_of, networks_with
from alphagat.networks import Network, make_network
from alphagat.networks.fused.network import FusedNetwork, find_obstacle
from alphagat.networks.gat import GraphAttentionNetwork
from alphagat.search import Evaluator, Search, make_search

# Fields of `config.network` that change neither the shape nor the meaning of a parameter.
NOT_OF_THE_WEIGHTS = "backend", "precision", "remat"
# Fields without effect in blocks without this kind of message, and those without effect in networks without messages.
OF_A_MESSAGE = {"attention": ("num_heads", "key_size"), "mixing": ("mixing_groups",)}
OF_MESSAGES = *OF_A_MESSAGE["attention"], *OF_A_MESSAGE["mixing"], "mlp_ratio", "value_pools"


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
    unused = [name for message in OF_A_MESSAGE.keys() - messages_of(blocks) for name in OF_A_MESSAGE[message]]
    return {name: value for name, value in found.items() if name not in unused}


def make_configured_network(config: Config, game: Game) -> Network:
    """Builds the network of `config` for one board, with its blocks as one kernel if it asks for that and nothing
    prevents it.
    """
    network = make_portable_network(config, game)
    if not _asks_for_kernel(config) or fusing_obstacle(config, game):
        return network
    assert isinstance(network, GraphAttentionNetwork)
    return FusedNetwork(network)


def make_portable_network(config: Config, game: Game) -> Network:
    """Builds the network of `config` for one board from XLA's operations alone, which run on every device."""
    return make_network(game.topology, value_support=game.value_support, **dataclasses.asdict(config.network))


def fusing_obstacle(config: Config, game: Game) -> str | None:
    """Returns why the blocks do not run as one kernel; None if they do, or if the config asks for no kernel."""
    if not _asks_for_kernel(config):
        return None
    if config.mesh.splits_network:
        return "several devices share the network"
    network = make_portable_network(config, game)
    assert isinstance(network, GraphAttentionNetwork)
    return find_obstacle(network, config.network.backend)


def _asks_for_kernel(config: Config) -> bool:
    return config.network.backend in MAY_FUSE and NETWORK_TRAITS[config.network.name].passes_messages


def make_params(game: Game, network: Network, key: jax.Array) -> Any:
    """Initialises the parameters of `network` for `game`. Compiles one program; eager `network.init` would compile each
    operation separately.
    """
    return jax.jit(network.init)(key, jnp.zeros((1, game.topology.num_nodes, game.num_features)))


def input_shapes(game: Game, num_positions: Any) -> tuple[jax.ShapeDtypeStruct, jax.ShapeDtypeStruct | None]:
    """Returns the shapes of the features of the nodes, and of the edges of each position if they vary."""
    num_nodes, num_relations = game.topology.num_nodes, len(game.topology.vocabulary.relations)
    nodes = jax.ShapeDtypeStruct((num_positions, num_nodes, game.num_features), jnp.float32)
    edges = jax.ShapeDtypeStruct((num_positions, num_nodes, num_nodes, num_relations), jnp.float32)
    return nodes, edges if game.topology.edges_vary else None


def param_shapes(game: Game, network: Network) -> Any:
    """Returns the parameters' shapes and dtypes: a pytree of `ShapeDtypeStruct`."""
    return jax.eval_shape(lambda: make_params(game, network, jax.random.key(0)))


def make_configured_search(
    game: Game, evaluate: Evaluator, config: Config, *, explore: bool, num_simulations: int
) -> Search:
    """Builds the search of `config`, but with `num_simulations` simulations.

    Without `explore`, `evaluation.value_scale` replaces `search.value_scale`. Self-play needs soft targets; in
    evaluation, a proven win must outweigh the prior.
    """
    options = dataclasses.asdict(config.search)
    options["num_simulations"] = num_simulations
    if not explore:
        options["value_scale"] = config.evaluation.value_scale
    return make_search(game, evaluate, explore=explore, **options)
