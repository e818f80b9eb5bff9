"""Builds networks and searches from a config."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from alphagat.config import Config
from alphagat.games.base import Game
from alphagat.network_traits import MAY_FUSE, NETWORK_TRAITS
from alphagat.networks import Network, make_network
from alphagat.networks.fused.network import FusedNetwork, find_obstacle
from alphagat.networks.gat import GraphAttentionNetwork
from alphagat.search import Evaluator, Search, make_search


def make_configured_network(config: Config, game: Game) -> Network:
    """Builds the network of `config` for one board and one device, with its blocks as one kernel if the config asks for
    that and nothing prevents it.
    """
    network = make_portable_network(config, game)
    if not asks_for_kernel(config) or fusing_obstacle(config, game):
        return network
    assert isinstance(network, GraphAttentionNetwork)
    return FusedNetwork(network)


def make_portable_network(config: Config, game: Game) -> Network:
    """Builds the network of `config` for one board from XLA's operations alone, which run on every device."""
    return make_network(game.topology, value_support=game.value_support, **dataclasses.asdict(config.network))


def fusing_obstacle(config: Config, game: Game) -> str | None:
    """Returns why the blocks do not run as one kernel; None if they do, or if the config asks for no kernel."""
    if not asks_for_kernel(config):
        return None
    network = make_portable_network(config, game)
    assert isinstance(network, GraphAttentionNetwork)
    return find_obstacle(network, config.network.backend)


def asks_for_kernel(config: Config) -> bool:
    """Returns whether the blocks shall run as one kernel where nothing prevents it."""
    return config.network.backend in MAY_FUSE and NETWORK_TRAITS[config.network.name].passes_messages


def make_params(game: Game, network: Network, key: jax.Array) -> Any:
    """Initializes the parameters of `network` for `game`. Compiles one program; eager `network.init` would compile each
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
