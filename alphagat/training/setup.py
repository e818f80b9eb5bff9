"""Builds the parts of a run from its config."""

import dataclasses
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from alphagat.config import Config, SearchConfig
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.learner.optimizer import make_optimizer, make_schedule
from alphagat.networks import make_network
from alphagat.search import Evaluator, Search, make_network_evaluator, make_search
from alphagat.training.plan import Plan, make_plan


@dataclasses.dataclass(frozen=True)
class Setup:
    """Everything static about a run."""

    config: Config
    game: Game
    plan: Plan
    network: nn.Module
    evaluate: Evaluator
    schedule: optax.Schedule
    optimizer: optax.GradientTransformation


def make_setup(config: Config) -> Setup:
    """Builds game, network and optimizer, and derives the sizes; `config` is validated.

    Raises:
      UserError: the board is unknown, or the run too short.
    """
    game = make_game(config.board)
    plan = make_plan(config, game)
    network = make_network(game.topology, **dataclasses.asdict(config.network))
    learner = config.learner
    schedule = make_schedule(
        learning_rate=learner.learning_rate,
        warmup_steps=learner.warmup_steps,
        total_steps=plan.total_updates,
        final_learning_rate_fraction=learner.final_learning_rate_fraction,
    )
    optimizer = make_optimizer(
        name=learner.optimizer, schedule=schedule, weight_decay=learner.weight_decay, clip_norm=learner.clip_norm
    )
    return Setup(config, game, plan, network, make_network_evaluator(game, network), schedule, optimizer)


def make_params(game: Game, network: nn.Module, key: jax.Array) -> Any:
    """Initialises the parameters of `network` for `game`."""
    return network.init(key, jnp.zeros((1, game.topology.num_nodes, game.num_features)))


def make_configured_search(
    game: Game, evaluate: Evaluator, search: SearchConfig, *, explore: bool, num_simulations: int | None = None
) -> Search:
    """Returns the search that a config describes, with another number of simulations where one is given."""
    options = dataclasses.asdict(search)
    if num_simulations is not None:
        options["num_simulations"] = num_simulations
    return make_search(game, evaluate, explore=explore, **options)
