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
from alphagat.games.base import Game
from alphagat.search import Evaluation, Evaluator
from alphagat.training.checkpoints import Checkpoints
from alphagat.training.run_folder import read_config
from alphagat.training.setup import make_configured_search, make_setup


@dataclasses.dataclass(frozen=True)
class Agent:
    """The network of one checkpoint, and the search around it.

    Attributes:
      game: the board it was trained on.
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
        search = make_configured_search(
            self.game, self.evaluator, self.config.search, explore=False, num_simulations=simulations
        )
        return search_player(f"iteration {self.iteration}, {simulations} simulations", search, self.params)

    def evaluate(self, state: Any) -> Evaluation:
        """Returns the network's prior logits `[A]` and value `[]` of one state, for the player to move."""
        evaluation = self.evaluator(self.params, jax.tree.map(lambda x: x[None], state))
        return jax.tree.map(lambda x: np.asarray(x[0]), evaluation)


def load(workdir: str | os.PathLike, iteration: int | None = None) -> Agent:
    """Restores the player that a run has trained.

    Args:
      workdir: the folder of the run.
      iteration: which checkpoint; None: the latest.

    Raises:
      UserError: there is no run, no such checkpoint, or it cannot be read.
    """
    setup = make_setup(read_config(workdir))
    with Checkpoints(Path(workdir), read_only=True) as checkpoints:
        steps = checkpoints.steps()
        if not steps:
            raise UserError(f"{workdir} has no complete checkpoint yet: let the run reach its first one")
        if iteration is not None and iteration not in steps:
            raise UserError(f"{workdir} has no checkpoint of iteration {iteration}: it has {steps}")
        step = steps[-1] if iteration is None else iteration
        params = checkpoints.restore_params(setup, step)
    return Agent(setup.game, setup.config, step, params, setup.evaluate)
