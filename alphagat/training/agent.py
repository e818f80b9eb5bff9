"""A trained player, restored from a run for evaluation."""

import dataclasses
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np

from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.evaluation.players import Player, search_player
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.networks import Network
from alphagat.search import Evaluation, Evaluator, Search, make_network_evaluator
from alphagat.training.checkpoints import Checkpoints
from alphagat.training.run_folder import read_config
from alphagat.training.setup import Setup, check_one_family, make_configured_network, make_configured_search


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
            self.game, self.evaluator, self.config.search, explore=False, num_simulations=num_simulations
        )

    def evaluate(self, state: Any) -> Evaluation:
        """Returns the network's prior logits `[A]` and value `[]` of one state, for the player to move."""
        evaluation = self.evaluator(self.params, jax.tree.map(lambda x: x[None], state))
        return jax.tree.map(lambda x: np.asarray(x[0]), evaluation)


def load(workdir: str | os.PathLike, iteration: int | None = None, board: str | None = None) -> Agent:
    """Restores the player that a run has trained.

    Args:
      workdir: the folder of the run.
      iteration: which checkpoint; None: the latest.
      board: the board to play, any of the family of the run's boards; None: the run's first.

    Raises:
      UserError: there is no run, no such checkpoint, it cannot be read, or the board is of another family.
    """
    config = read_config(workdir)
    game = make_game(board or config.boards[0])
    check_one_family(config, [make_game(config.boards[0]), game])
    network = make_configured_network(config, game)
    step, params = _restore(Path(workdir), game, network, iteration)
    return Agent(game, config, step, params, make_network_evaluator(game, network))


def load_weights(workdir: str, setup: Setup) -> Any:
    """Returns the latest parameters of another run, which `setup` can go on from.

    Raises:
      UserError: there is no run with a checkpoint, its boards are of another family, or its network differs.
    """
    config = read_config(workdir)
    source = make_game(config.boards[0])
    if (source.topology.vocabulary, source.num_features) != (setup.game.topology.vocabulary, setup.game.num_features):
        raise UserError(
            f"config.init_from={workdir!r} has weights of the family {source.topology.vocabulary.family} "
            f"({', '.join(config.boards)}), but config.boards is of {setup.game.topology.vocabulary.family} "
            f"({', '.join(setup.config.boards)}); take a run of that family"
        )
    if config.network.name == "resnet":
        check_one_family(config, [source, setup.game])
    for field in dataclasses.fields(config.network):
        theirs, ours = getattr(config.network, field.name), getattr(setup.config.network, field.name)
        if theirs != ours and field.name != "backend":
            raise UserError(
                f"config.network.{field.name}={ours!r}, but the weights of config.init_from={workdir!r} have "
                f"{theirs!r}: set that"
            )
    return _restore(Path(workdir), setup.game, setup.network, None)[1]


def _restore(folder: Path, game: Game, network: Network, iteration: int | None) -> tuple[int, Any]:
    """Returns the iteration and the parameters of a checkpoint, the latest where none is named."""
    with Checkpoints(folder, read_only=True) as checkpoints:
        steps = checkpoints.steps()
        if not steps:
            raise UserError(f"{folder} has no complete checkpoint yet: let the run reach its first one")
        if iteration is not None and iteration not in steps:
            raise UserError(f"{folder} has no checkpoint of iteration {iteration}: it has {steps}")
        step = steps[-1] if iteration is None else iteration
        return step, checkpoints.restore_params(game, network, step)
