"""Analyses batches of positions by the network and by the search."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.agents.agent import Agent
from alphagat.errors import UserError
from alphagat.search import Evaluator, Search, SearchOutput
from alphagat.search.tree import likeliest_action, mask_illegal, root_statistics


class Analysis(NamedTuple):
    """The analysis of `[B]` positions, from the perspective of the player to move; each shape follows a leading `[B]`.

    Values lie in [-1, 1]; in games for one player they are points.

    Attributes:
      prior: `[A]` float32, the network's policy; sums to 1, 0 where illegal.
      network_value: `[]` float32, without search. Where `Game.winning_actions` marks a legal move, it is 1, and only
        marked moves have a prior.
      action: `[]` int32, the move to play.
      policy: `[A]` float32, the search's improved policy (`SearchOutput.policy_target`); sums to 1.
      visits: `[A]` int32, simulations through each action.
      action_values: `[A]` float32; NaN if unvisited.
      value: `[]` float32, with search.
      variation: `[L]` int32, the row of `variations` for `action`.
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
    """Analyses positions by an agent's network and search, without exploration noise.

    Each batch size is compiled at its first use, so pad batches to a few sizes.
    """

    def __init__(self, agent: Agent, num_simulations: int):
        """Builds the analysis without compiling it.

        Args:
          num_simulations: per position; 0: no search, so that `policy` and `value` are the network's.

        Raises:
          UserError: `num_simulations` is negative, no integer or above `bounds.MAX_SIMULATIONS`.
        """
        if num_simulations < 0:
            raise UserError(f"simulations {num_simulations}: it must be 0 (the network alone) or more")
        search = agent.search(num_simulations) if num_simulations else no_search(agent.evaluator)
        self._params, self._analyze = agent.params, jax.jit(_make_program(agent.evaluator, search))

    def __call__(self, states: Any, key: jax.Array, params: Any = None) -> Analysis:
        """Analyses `[B]` states, none of them terminal.

        Args:
          key: draws chance outcomes, and breaks ties between moves.
          params: those of another checkpoint of the same network; None: the agent's.

        Raises:
          UserError: `states` is no batch.
        """
        if np.ndim(states.terminated) != 1:
            raise UserError("states: it must be a batch [B]; for one state, pass games.batches.batch_of_one(state)")
        params = self._params if params is None else params
        return jax.device_get(self._analyze(params, states, key))


def combine(prior: jax.Array, network_value: jax.Array, output: SearchOutput) -> Analysis:
    """Combines the network's policy `[B, A]` and value `[B]` with the output of a search that keeps its root."""
    assert output.root is not None
    line = jnp.take_along_axis(output.root.variations, output.action[:, None, None], axis=1)[:, 0]
    return Analysis(
        prior=prior,
        network_value=network_value,
        action=output.action,
        policy=output.policy_target,
        visits=output.root.visits,
        action_values=output.root.action_values,
        value=output.value,
        variation=line,
        variations=output.root.variations,
    )


def _make_program(evaluate: Evaluator, search: Search) -> Callable[[Any, Any, jax.Array], Analysis]:
    def analyze(params: Any, states: Any, key: jax.Array) -> Analysis:
        evaluation = evaluate(params, states)
        prior = jax.nn.softmax(mask_illegal(evaluation.prior_logits, states))
        plies = jnp.zeros(states.terminated.shape, jnp.int32)  # used by exploration only
        return combine(prior, evaluation.value, search(params, key, states, plies))

    return analyze


def no_search(evaluate: Evaluator) -> Search:
    """Makes a search without simulations, whose output is the network's policy, value and best move."""

    def search(params: Any, key: jax.Array, states: Any, plies: jax.Array) -> SearchOutput:
        del key, plies
        evaluation = evaluate(params, states)
        logits = mask_illegal(evaluation.prior_logits, states)
        none = jnp.zeros((len(logits), 1, logits.shape[1]))
        children = jnp.full(none.shape, -1, jnp.int32)
        root = root_statistics(none.astype(jnp.int32), none, none, children)
        action = likeliest_action(evaluation.prior_logits, states)
        return SearchOutput(action, jax.nn.softmax(logits), evaluation.value, root)

    return search
