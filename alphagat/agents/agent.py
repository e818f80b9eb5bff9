"""Trained players, loaded from a run, a file or the package."""

import dataclasses
import functools
import os
from typing import Any

import jax
import numpy as np

from alphagat import config_validation
from alphagat.agents.build import make_configured_network, make_configured_search, param_shapes
from alphagat.agents.compatibility import fits_sizes
from alphagat.agents.sources import resolve
from alphagat.bounds import MAX_SIMULATIONS, MAX_SYMMETRIES, Limits, check_integer
from alphagat.config import Config
from alphagat.errors import UserError
from alphagat.evaluation.players import Player, search_player
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.games.batches import batch_of_one
from alphagat.search import Evaluation, Evaluator, Search, make_network_evaluator
from alphagat.wording import counted

SIMULATIONS = Limits(at_least=1, at_most=MAX_SIMULATIONS)
SYMMETRIES = Limits(at_least=1, at_most=MAX_SYMMETRIES)


@dataclasses.dataclass(frozen=True)
class Agent:
    """The network of one checkpoint, and the search around it.

    Attributes:
      game: the board that the agent plays.
      config: the config of the run.
      iteration: the iteration of the checkpoint.
      params: the parameters of the network.
      evaluator: `evaluator(params, states [B]) -> Evaluation`.
      symmetries: the number of images of a position, under symmetries of the board, whose evaluations it averages.
    """

    game: Game
    config: Config = dataclasses.field(repr=False)
    iteration: int
    params: Any = dataclasses.field(repr=False)
    evaluator: Evaluator = dataclasses.field(repr=False)
    symmetries: int = dataclasses.field(default=1, repr=False)

    def player(self, num_simulations: int | None = None) -> Player:
        """Returns the player for matches, which plays its best move, without exploration noise.

        Args:
          num_simulations: per move; None: the number in the run's own evaluations.

        Raises:
          UserError: `num_simulations` is no integer from 1 to `bounds.MAX_SIMULATIONS`.
        """
        simulations = self.config.evaluation.num_simulations if num_simulations is None else num_simulations
        search = self.search(simulations)
        name = f"iteration {self.iteration}, {counted(simulations, 'simulation')}"
        if self.symmetries > 1:
            name += f", {self.symmetries} symmetries"
        return search_player(name, search, self.params)

    def search(self, num_simulations: int) -> Search:
        """Builds the run's search without exploration noise, with this number of simulations per move.

        Returns `search(params, key, states [B], plies [B]) -> SearchOutput`; without noise, `plies` has no effect.

        Raises:
          UserError: `num_simulations` is no integer from 1 to `bounds.MAX_SIMULATIONS`.
        """
        number = check_integer("num_simulations", num_simulations, SIMULATIONS)
        return make_configured_search(self.game, self.evaluator, self.config, explore=False, num_simulations=number)

    def evaluate(self, state: Any) -> Evaluation:
        """Evaluates one state: prior logits `[A]` and value `[]`, from the perspective of the player to move.

        Where `Game.winning_actions` marks a legal move, the value is 1 and only marked moves have a prior.

        Raises:
          UserError: `state` is a batch.
        """
        if np.ndim(state.terminated):
            raise UserError(
                f"state: it is a batch of shape {list(np.shape(state.terminated))}; pass one state, or call "
                "agent.evaluator(agent.params, states)"
            )
        evaluation = _compile(self.evaluator)(self.params, batch_of_one(state))
        return jax.tree.map(lambda x: np.asarray(x[0]), evaluation)


@functools.lru_cache(maxsize=16)
def _compile(evaluator: Evaluator) -> Evaluator:
    return jax.jit(evaluator)


def load(
    source: str | os.PathLike,
    iteration: int | None = None,
    board: str | None = None,
    precision: str | None = None,
    symmetries: int = 1,
) -> Agent:
    """Loads a trained player.

    Args:
      source: a run folder, one of its checkpoints (runs/1/checkpoints/40), a file of `alphagat export`, the
        name of a shipped network, such as `hex` (`weight_files.shipped_names`), or "shipped" with a board.
      iteration: the checkpoint of a run; None: the latest.
      board: any board of the family of the run's boards; None: the run's first.
      precision: overrides `network.precision`; None: the precision used in training.
      symmetries: evaluations are means over this many images of a position under symmetries of the board, so
        the network evaluates that many positions; 1: the position alone.

    Raises:
      UserError: the source or its checkpoint does not exist or cannot be read, the board is of another family or has
        fewer symmetries, or the precision is unknown.
    """
    if board == "":
        raise UserError("board '': the name is empty; name one such as hex:5, or leave it out")
    resolved = resolve(source, iteration, board)
    config = resolved.config
    if precision is not None:
        config = dataclasses.replace(config, network=dataclasses.replace(config.network, precision=precision))
        config_validation.validate(config)
    game = make_game(config.boards[0] if board is None else board)
    trained = make_game(config.boards[0])
    if trained.family != game.family:
        raise UserError(
            f"board {game.name}: {source} was trained on {', '.join(config.boards)} and plays only boards of that "
            "family; take one of them, or another network"
        )
    if not fits_sizes(config, [trained, game]):
        raise UserError(
            f"board {game.name}: {source} was trained on {trained.name}, and {config.network.name!r} has weights for "
            "one size of board; take that board, or another network"
        )
    symmetries = _check_symmetries(game, symmetries)
    network = make_configured_network(config, game)
    params = resolved.read_params(param_shapes(game, network))
    evaluator = make_network_evaluator(game, network, symmetries)
    return Agent(game, config, resolved.iteration, params, evaluator, symmetries)


def _check_symmetries(game: Game, symmetries: int) -> int:
    """Returns the number as an int. Raises UserError unless the board has as many symmetries."""
    symmetries, most = check_integer("symmetries", symmetries, SYMMETRIES), game.symmetries.num_symmetries
    if symmetries > most:
        raise UserError(f"symmetries={symmetries}: it must be at most {most}, the number of symmetries of {game.name}")
    return symmetries
