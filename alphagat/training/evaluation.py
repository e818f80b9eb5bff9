"""Evaluation during training: matches against fixed opponents and earlier parameters, and held-out positions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from alphagat.agents.build import make_configured_search
from alphagat.errors import UserError
from alphagat.evaluation.arena import play_match
from alphagat.evaluation.match_result import MatchResult
from alphagat.evaluation.openings import Openings, distinct_openings
from alphagat.evaluation.oracles import OracleTest, make_oracle
from alphagat.evaluation.players import Player, make_opponent, search_player
from alphagat.evaluation.single_player import Scores, play_alone
from alphagat.games.base import Game
from alphagat.games.states import moves_determine_positions
from alphagat.monitoring.metric_text import describe_results
from alphagat.opponents import PREVIOUS
from alphagat.runs.metrics import ORACLE, SCORE, SCORE_RATIO, WIN_RATE, Result
from alphagat.runtime import sharding
from alphagat.training.iteration import EVALUATIONS
from alphagat.training.pretraining.dataset import Recorded
from alphagat.training.pretraining.holdout import Holdout
from alphagat.training.setup import Run, Setup
from alphagat.training.state import RunState


class PlayedGame(NamedTuple):
    """A game of a match; `actions` `[T]` are all moves from the initial position, -1 after the last."""

    game: Game
    actions: np.ndarray


class EvaluationResult(NamedTuple):
    """What an evaluation found.

    Attributes:
      results: of all boards.
      games: one game on each board for two players without chance.
      previous: the iteration of the opponent `previous`; 0: the initial network.
    """

    results: list[Result]
    games: list[PlayedGame]
    previous: int = 0


class RunEvaluator:
    """Plays the opponents of a run on all boards, and predicts the recorded games that were held out, if there are any.

    All evaluations share the openings.
    """

    def __init__(self, run: Run, recorded: Recorded | None = None):
        self._boards = [_BoardMatches(setup, run.mesh) for setup in run.boards]
        self._holdout = None if recorded is None else Holdout(run, recorded)

    def describe_start(self, state: RunState) -> list[str]:
        """Returns a line with the held-out metrics of the initial parameters, if there are recorded games."""
        if self._holdout is None:
            return []
        rows = describe_results(self._holdout.measure(state.train.acting), self._holdout.boards)
        words = ", ".join(f"{each.label} {each.value}" for each in rows)
        return [f"before the first update: {words or 'nothing is held out'}"]

    def evaluate(
        self, state: RunState, iteration: int, stage: Callable[[str], None]
    ) -> tuple[RunState, EvaluationResult]:
        """Returns the state, marked as evaluated and with `previous_params` updated, and the evaluation.

        Args:
          stage: receives the name of each part before it starts.
        """
        held_out = []
        if self._holdout is not None:
            stage("held-out positions")
            held_out = self._holdout.measure(state.train.acting)
        found = EvaluationResult([], [], int(state.evaluated))
        for board in self._boards:
            here = board.play(state.train.acting, state.previous_params, iteration, stage)
            found.results.extend(here.results)
            found.games.extend(here.games)
        found.results.extend(held_out)
        # Copied, because the next iteration donates the parameters.
        previous = jax.tree.map(jnp.copy, state.train.acting)
        return state.replace(previous_params=previous, evaluated=jnp.copy(state.iteration)), found


class _BoardMatches:
    """The evaluation of one board."""

    def __init__(self, setup: Setup, mesh: Mesh):
        self._config, self._game = setup.config.evaluation, setup.game
        self.name, self._mesh, self._seed = setup.game.name, mesh, setup.config.seed
        self._search = make_configured_search(
            setup.game,
            setup.evaluate,
            setup.config,
            explore=False,
            num_simulations=self._config.num_simulations,
        )
        opponents = self._config.opponents
        self._opponents = {name: make_opponent(setup.game, name) for name in opponents if name != PREVIOUS}
        self._alone = setup.game.num_players == 1
        self._oracle = None
        if self._config.oracle_positions:
            oracle = make_oracle(setup.game, self._config.oracle_positions, self._seed)
            self._oracle = OracleTest(oracle, setup.evaluate, self._search)
        if opponents and not self._alone:
            self._openings = _draw_openings(setup.game, self._config.num_games, self._seed)

    def play(self, params: Any, previous: Any, iteration: int, stage: Callable[[str], None]) -> EvaluationResult:
        """Evaluates the parameters against every opponent. The game is the first one against the last opponent."""
        player = search_player("now", self._search, params)
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(self._seed), EVALUATIONS), iteration)
        own_key, oracle_key, matches_key = jax.random.split(key, 3)
        scores = self._score(player, own_key) if self._alone else None
        results = [] if scores is None else [Result(SCORE, self.name, scores.mean, *scores.interval)]
        if self._oracle is not None:
            stage(f"solved positions of {self.name}")
            # The oracle test runs on one device of each process.
            here = jax.tree.map(sharding.fetch, params)
            shares = self._oracle.measure(here, oracle_key)
            results += [Result(ORACLE + name, self.name, share) for name, share in shares.items()]
        games = []
        for number, name in enumerate(self._config.opponents):
            is_previous = name == PREVIOUS
            opponent = search_player(PREVIOUS, self._search, previous) if is_previous else self._opponents[name]
            match_key = jax.random.fold_in(matches_key, number)
            stage(f"match {number + 1} of {len(self._config.opponents)}, {self.name} against {name}")
            if scores is not None:
                ratio = scores.ratio_to(self._score(opponent, match_key))
                results.append(Result(SCORE_RATIO, self.name, ratio, opponent=name))
                continue
            result = play_match(self._game, player, opponent, self._openings, match_key, self._mesh)
            results.append(match_result(self.name, name, result))
            if moves_determine_positions(self._game):
                games = [PlayedGame(self._game, np.concatenate([self._openings.actions[0], result.actions[0, 0]]))]
        return EvaluationResult(results, games)

    def _score(self, player: Player, key: jax.Array) -> Scores:
        return play_alone(self._game, player, self._config.num_games, key, self._mesh)


def _draw_openings(game: Game, num_games: int, seed: int) -> Openings:
    try:
        return distinct_openings(game, num_games // 2, seed)
    except UserError as error:
        raise UserError(f"config.evaluation.num_games={num_games}: {error}") from error


def match_result(board: str, opponent: str, match: MatchResult) -> Result:
    """Returns the score in [0, 1], where a draw counts half, and its 95% interval."""
    return Result(WIN_RATE, board, match.score, *match.interval, opponent)
