"""A trained player, restored from a run for evaluation."""

import dataclasses
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from alphagat import config_validation
from alphagat.agents import weight_files
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.evaluation.players import Player, search_player
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.network_traits import NETWORK_TRAITS
from alphagat.networks import Network
from alphagat.runs.checkpoints import Checkpoints
from alphagat.runs.folder import read_config
from alphagat.search import Evaluation, Evaluator, Search, make_network_evaluator
from alphagat.training.setup import (
    Setup,
    check_one_family,
    make_configured_network,
    make_configured_search,
    make_params,
)


@dataclasses.dataclass(frozen=True)
class Agent:
    """The network of one checkpoint, and the search around it.

    Attributes:
      game: the board it plays.
      config: of its run.
      iteration: of its checkpoint.
      params: of its network.
      evaluator: `evaluator(params, states [B]) -> Evaluation`.
    """

    game: Game
    config: Config
    iteration: int
    params: Any
    evaluator: Evaluator

    def player(self, num_simulations: int | None = None) -> Player:
        """Returns the player for matches; None: as many simulations as the run's own evaluations.

        It plays its best move, without noise. `Player.act(params, key, states)` takes a batch of states.
        """
        simulations = self.config.evaluation.num_simulations if num_simulations is None else num_simulations
        name = f"iteration {self.iteration}, {simulations} simulations"
        return search_player(name, self.search(simulations), self.params)

    def search(self, num_simulations: int) -> Search:
        """Returns the run's search, `search(params, key, states, plies) -> SearchOutput`, without noise."""
        return make_configured_search(
            self.game, self.evaluator, self.config, explore=False, num_simulations=num_simulations
        )

    def evaluate(self, state: Any) -> Evaluation:
        """Returns the network's prior logits `[A]` and value `[]` of one state, for the player to move."""
        evaluation = self.evaluator(self.params, jax.tree.map(lambda x: x[None], state))
        return jax.tree.map(lambda x: np.asarray(x[0]), evaluation)


def load(
    source: str | os.PathLike, iteration: int | None = None, board: str | None = None, precision: str | None = None
) -> Agent:
    """Restores a trained player.

    Args:
      source: the folder of a run, a file of `python -m alphagat.export`, or the name of a network that comes with the
        package, such as `hex` (`weight_files.shipped_names`).
      iteration: which checkpoint of a run; None: the latest.
      board: the board to play, any of the family of the run's boards; None: the run's first.
      precision: what its blocks compute in, as `network.precision`; None: what they did in training.

    Raises:
      UserError: there is no run, no such checkpoint, it cannot be read, the board is of another family, or there is no
        such precision.
    """
    trained = _open(source, iteration)
    config = trained.config
    if precision is not None:
        config = dataclasses.replace(config, network=dataclasses.replace(config.network, precision=precision))
        config_validation.validate(config)
    game = make_game(board or config.boards[0])
    check_one_family(config, [make_game(config.boards[0]), game])
    network = make_configured_network(config, game)
    params = trained.read(game, network)
    return Agent(game, config, trained.iteration, params, make_network_evaluator(game, network))


def load_weights(source: str, setup: Setup) -> Any:
    """Returns the latest parameters of another run, or of a file, which `setup` can go on from; an
    auxiliary head that they lack starts with new parameters.

    Raises:
      UserError: there are none, their boards are of another family, or their network differs.
    """
    trained = _open(source, None)
    config, game = trained.config, make_game(trained.config.boards[0])
    if (game.topology.vocabulary, game.num_features) != (setup.game.topology.vocabulary, setup.game.num_features):
        raise UserError(
            f"config.init_from={source!r} has weights of the family {game.topology.vocabulary.family} "
            f"({', '.join(config.boards)}), but config.boards is of {setup.game.topology.vocabulary.family} "
            f"({', '.join(setup.config.boards)}); take a run of that family"
        )
    if not NETWORK_TRAITS[config.network.name].plays_any_size:
        check_one_family(config, [game, setup.game])
    for field in dataclasses.fields(config.network):
        theirs, ours = getattr(config.network, field.name), getattr(setup.config.network, field.name)
        is_compatible = field.name in ("backend", "precision", "remat") or field.name.endswith("_head")
        if theirs != ours and not is_compatible:
            raise UserError(
                f"config.network.{field.name}={ours!r}, but the weights of config.init_from={source!r} have "
                f"{theirs!r}: set that"
            )
    found = trained.read(setup.game, make_configured_network(config, setup.game))["params"]
    theirs, ours = set(config.network.auxiliary_heads), set(setup.config.network.auxiliary_heads)
    kept = {name: part for name, part in found.items() if name not in theirs - ours}
    if ours - theirs:
        fresh = make_params(setup.game, setup.network, jax.random.key(setup.config.seed))["params"]
        kept |= {name: fresh[name] for name in ours - theirs}
    return {"params": kept}


class _Trained(NamedTuple):
    """Parameters not yet read: the config of their run, their iteration, and how to read them."""

    config: Config
    iteration: int
    read: Callable[[Game, Network], Any]


def _open(source: str | os.PathLike, iteration: int | None) -> _Trained:
    if (file := weight_files.find_file(os.fspath(source))) is not None:
        config, found = weight_files.read_header(file)
        if iteration not in (None, found):
            raise UserError(f"{file} is of iteration {found}, not {iteration}")
        return _Trained(config, found, functools.partial(weight_files.read_params, file))
    folder, config = Path(source), read_config(source)
    with Checkpoints(folder, read_only=True) as checkpoints:
        steps = checkpoints.steps()
    if not steps:
        raise UserError(f"{folder} has no complete checkpoint yet: let the run reach its first one")
    if iteration is not None and iteration not in steps:
        raise UserError(f"{folder} has no checkpoint of iteration {iteration}: it has {steps}")
    step = steps[-1] if iteration is None else iteration
    return _Trained(config, step, functools.partial(_restore, folder, step))


def _restore(folder: Path, step: int, game: Game, network: Network) -> Any:
    with Checkpoints(folder, read_only=True) as checkpoints:
        return checkpoints.restore_params(game, network, step)
