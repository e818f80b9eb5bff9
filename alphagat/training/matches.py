"""Matches in the training loop: how strong the parameters are now, against fixed and earlier players."""

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from alphagat.evaluation.arena import MatchResult, play_match
from alphagat.evaluation.openings import distinct_openings
from alphagat.evaluation.players import make_opponent, search_player
from alphagat.training.setup import Setup, make_configured_search
from alphagat.training.state import RunState

PREVIOUS = "previous"


class Matches:
    """The opponents and openings of a run; every evaluation plays the same openings."""

    def __init__(self, setup: Setup, mesh: Mesh):
        config = setup.config.evaluation
        self._game, self._mesh, self._seed = setup.game, mesh, setup.config.seed
        self._search = make_configured_search(
            setup.game, setup.evaluate, setup.config.search, explore=False, num_simulations=config.num_simulations
        )
        self._opponents = {name: make_opponent(setup.game, name) for name in config.opponents if name != PREVIOUS}
        self._names = config.opponents
        self._openings = distinct_openings(setup.game, config.num_games // 2, self._seed)

    def play(self, state: RunState, iteration: int) -> tuple[RunState, dict[str, float]]:
        """Plays every opponent; returns the metrics, and the state whose previous parameters and rating follow from
        them.
        """
        metrics = {}
        rating = float(state.rating)
        player = search_player("now", self._search, state.train.params)
        for number, name in enumerate(self._names):
            opponent = (
                search_player(PREVIOUS, self._search, state.previous_params)
                if name == PREVIOUS
                else self._opponents[name]
            )
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(self._seed), iteration), number)
            result = play_match(self._game, player, opponent, self._openings, key, self._mesh)
            metrics |= match_metrics(name, result)
            if name == PREVIOUS:
                rating += result.elo
                metrics["eval/elo"] = rating
        return self._advance(state, rating), metrics

    def _advance(self, state: RunState, rating: float) -> RunState:
        # Copies, because the next iteration donates the parameters.
        return state.replace(
            previous_params=jax.tree.map(jnp.copy, state.train.params),
            rating=jax.device_put(jnp.float32(rating), state.rating.sharding),
        )


def match_metrics(name: str, result: MatchResult) -> dict[str, float]:
    """Returns the score (draws count half) and its 95% interval."""
    low, high = result.interval
    prefix = f"eval/vs_{name}/win_rate"
    return {prefix: result.score, f"{prefix}_low": low, f"{prefix}_high": high}
