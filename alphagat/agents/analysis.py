"""Analysis of a batch of positions: what the network says of each, and what the search makes of it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.agents.agent import Agent
from alphagat.errors import UserError
from alphagat.search import Evaluator, Search
from alphagat.search.tree import SearchOutput, mask_illegal, root_statistics


class Analysis(NamedTuple):
    """What is known of a batch of positions, with `[B]` before each shape, from the view of the player to move.

    Values lie in [-1, 1], or are points in games for one player.

    Attributes:
      prior: `[A]` float32, the network's policy, sums to 1; 0 where illegal.
      network_value: `[]` float32, without search.
      action: `[]` int32, the move to play.
      policy: `[A]` float32, the search's improved policy (`SearchOutput.policy_target`), sums to 1.
      visits: `[A]` int32, simulations through each action.
      action_values: `[A]` float32; NaN where never visited.
      value: `[]` float32, with search.
      variation: `[L]` int32, the line of `variations` that begins with `action`.
      variations: `[A, L]` int32, as in `search.tree.RootStatistics`.
    """

    prior: Any
    network_value: Any
    action: Any
    policy: Any
    visits: Any
    action_values: Any
    value: Any
    variation: Any
    variations: Any


class Analyzer:
    """Analyses positions by an agent's network and search, without noise.

    Each size of batch is compiled once, at its first use: who has any number of positions pads them to a few sizes.
    """

    def __init__(self, agent: Agent, num_simulations: int):
        """Prepares the analysis; nothing is compiled yet.

        Args:
          num_simulations: of the search for each position; 0: the network alone, whose policy is `policy` then, and
            whose value `value`.

        Raises:
          UserError: `num_simulations` is negative.
        """
        if num_simulations < 0:
            raise UserError(f"simulations {num_simulations}: take 0, for the network alone, or more")
        search = agent.search(num_simulations) if num_simulations else _no_search(agent.evaluator)
        self._params, self._analyze = agent.params, jax.jit(_make_analysis(agent.evaluator, search))

    def __call__(self, states: Any, key: jax.Array) -> Analysis:
        """Analyses `[B]` states, none of them terminal.

        Args:
          key: of chance in games that have it, and of ties between moves.
        """
        return jax.tree.map(np.asarray, self._analyze(self._params, states, key))


def make_analysis(prior: jax.Array, network_value: jax.Array, found: SearchOutput) -> Analysis:
    """Puts together what the network says of `[B]` states, `[B, A]` and `[B]`, and what a search has found."""
    assert found.root is not None
    line = jnp.take_along_axis(found.root.variations, found.action[:, None, None], axis=1)[:, 0]
    return Analysis(
        prior=prior,
        network_value=network_value,
        action=found.action,
        policy=found.policy_target,
        visits=found.root.visits,
        action_values=found.root.action_values,
        value=found.value,
        variation=line,
        variations=found.root.variations,
    )


def _make_analysis(evaluate: Evaluator, search: Search) -> Callable[[Any, Any, jax.Array], Analysis]:
    def analyze(params: Any, states: Any, key: jax.Array) -> Analysis:
        evaluation = evaluate(params, states)
        prior = jax.nn.softmax(mask_illegal(evaluation.prior_logits, states))
        plies = jnp.zeros(states.terminated.shape, jnp.int32)  # they steer the noise of self-play only
        return make_analysis(prior, evaluation.value, search(params, key, states, plies))

    return analyze


def _no_search(evaluate: Evaluator) -> Search:
    """Returns what stands for a search without simulations: the network's policy, its value and its best move."""

    def search(params: Any, key: jax.Array, states: Any, plies: jax.Array) -> SearchOutput:
        del key, plies
        evaluation = evaluate(params, states)
        logits = mask_illegal(evaluation.prior_logits, states)
        none = jnp.zeros((len(logits), 1, logits.shape[1]))
        children = jnp.full(none.shape, -1, jnp.int32)
        root = root_statistics(none.astype(jnp.int32), none, none, children)
        return SearchOutput(logits.argmax(axis=-1).astype(jnp.int32), jax.nn.softmax(logits), evaluation.value, root)

    return search
