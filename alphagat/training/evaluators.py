"""Matches in the training loop: how strong the parameters are now, against fixed and earlier players."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from alphagat.agents.build import make_configured_search
from alphagat.evaluation.arena import play_match
from alphagat.evaluation.match_result import MatchResult
from alphagat.evaluation.openings import distinct_openings
from alphagat.evaluation.oracles import OracleTest, make_oracle
from alphagat.evaluation.players import Player, make_opponent, search_player
from alphagat.evaluation.single_player import Scores, play_alone
from alphagat.monitoring.live_ratings import NUM_GAMES, PREVIOUS
from alphagat.runtime import sharding
from alphagat.training.setup import Run, Setup
from alphagat.training.state import RunState


class Matches:
    """The opponents and openings of a run; every evaluation plays the same openings."""

    def __init__(self, run: Run):
        self._boards = [_BoardMatches(setup, run.mesh) for setup in run.boards]
        self._num_games = run.config.evaluation.num_games

    def first_lines(self, state: RunState) -> list[str]:
        """Returns what to say of the initial state: nothing."""
        del state
        return []

    def play(self, state: RunState, iteration: int) -> tuple[RunState, dict[str, float]]:
        """Plays every opponent on every board; returns the metrics, and the state with today's parameters as the
        previous ones. With several boards the name of each stands in its metrics: `eval/hex:7/vs_random/win_rate`.
        """
        metrics = {NUM_GAMES: float(self._num_games)}
        for board in self._boards:
            found = board.play(state.train.acting, state.previous_params, iteration)
            prefix = f"eval/{board.name}/" if len(self._boards) > 1 else "eval/"
            metrics |= {prefix + name.removeprefix("eval/"): value for name, value in found.items()}
        # Copies, because the next iteration donates the parameters.
        previous = jax.tree.map(jnp.copy, state.train.acting)
        return state.replace(previous_params=previous, evaluated=jnp.copy(state.iteration)), metrics


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
        if not self._alone:
            self._openings = distinct_openings(setup.game, self._config.num_games // 2, self._seed)

    def play(self, params: Any, previous: Any, iteration: int) -> dict[str, float]:
        """Returns the metrics of the parameters against every opponent."""
        player = search_player("now", self._search, params)
        key = jax.random.fold_in(jax.random.key(self._seed), iteration)
        metrics = score_metrics(self._score(player, key)) if self._alone else {}
        if self._oracle is not None:
            # On one device of each process.
            here = jax.tree.map(sharding.fetch, params)
            metrics |= {f"eval/oracle/{name}": share for name, share in self._oracle.play(here, key).items()}
        for number, name in enumerate(self._config.opponents):
            is_previous = name == PREVIOUS
            opponent = search_player(PREVIOUS, self._search, previous) if is_previous else self._opponents[name]
            match_key = jax.random.fold_in(key, number)
            if self._alone:
                metrics[f"eval/vs_{name}/score_ratio"] = metrics["eval/score"] / self._score(opponent, match_key).mean
                continue
            result = play_match(self._game, player, opponent, self._openings, match_key, self._mesh)
            metrics |= match_metrics(name, result)
        return metrics

    def _score(self, player: Player, key: jax.Array) -> Scores:
        return play_alone(self._game, player, self._config.num_games, key, self._mesh)


def match_metrics(name: str, result: MatchResult) -> dict[str, float]:
    """Returns the score (draws count half) and its 95% interval."""
    return _with_interval(f"eval/vs_{name}/win_rate", result.score, result.interval)


def score_metrics(scores: Scores) -> dict[str, float]:
    """Returns the mean score of a game for one player, and its 95% interval."""
    return _with_interval("eval/score", scores.mean, scores.interval)


def _with_interval(name: str, value: float, interval: tuple[float, float]) -> dict[str, float]:
    return {name: value, f"{name}_low": interval[0], f"{name}_high": interval[1]}
