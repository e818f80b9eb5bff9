"""Evaluators: functions from batches of states to priors and values."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import chex
import jax
import jax.numpy as jnp
import numpy as np

from alphagat.errors import UserError
from alphagat.games.base import Game
from alphagat.games.states import network_inputs
from alphagat.networks import Network
from alphagat.networks.values import expected_value
from alphagat.runtime.cpu_cache import map_in_parts


class Evaluation(NamedTuple):
    """Priors and values of a batch of states.

    Attributes:
      prior_logits: `[B, A]`, illegal actions not masked.
      value: `[B]`, from the perspective of the player to move; undefined at terminal states.
    """

    prior_logits: jax.Array
    value: jax.Array


Evaluator = Callable[[Any, Any], Evaluation]  # (params, states [B]) -> Evaluation


def evaluate_states(evaluate: Evaluator, params: Any, states: Any) -> Evaluation:
    """Evaluates `[B]` states, and checks the shapes at trace time: broadcasting would hide a missing axis."""
    evaluation = evaluate(params, states)
    chex.assert_equal_shape([evaluation.prior_logits, states.legal_action_mask])
    chex.assert_equal_shape([evaluation.value, states.terminated])
    return evaluation


def make_network_evaluator(game: Game, network: Network, num_symmetries: int = 1) -> Evaluator:
    """Returns the network's evaluator. Where `Game.winning_actions` marks a legal move, the value is 1, and only the
    marked moves have a prior.

    Args:
      num_symmetries: with more than 1, prior logits and value are means over images of each state under so many
        symmetries of the game, all of which the network evaluates.
    """
    if num_symmetries == 1:
        evaluate_by_network = make_plain_evaluator(game, network)
    else:
        evaluate_by_network = make_averaging_evaluator(game, network, num_symmetries)

    def evaluate(params: Any, states: Any) -> Evaluation:
        evaluation = evaluate_by_network(params, states)
        wins = jax.vmap(game.winning_actions)(states)
        return evaluation if wins is None else _take_wins(evaluation, wins & states.legal_action_mask)

    return evaluate


def make_plain_evaluator(game: Game, network: Network) -> Evaluator:
    """Returns the evaluator that observes each state and applies the network to it."""

    def evaluate(params: Any, states: Any) -> Evaluation:
        return map_in_parts(lambda part: _apply(game, network, params, *network_inputs(game, part)), states)

    return evaluate


def make_averaging_evaluator(game: Game, network: Network, num_symmetries: int) -> Evaluator:
    """Returns the evaluator that applies the network to the images of each state under the first `num_symmetries`
    symmetries of the game, and averages the prior logits and the values.
    """
    node_permutations = game.symmetries.node_permutations[:num_symmetries]  # [S, V]
    inverses = np.argsort(game.symmetries.action_permutations[:num_symmetries], axis=1)  # [S, A]

    def evaluate(params: Any, states: Any) -> Evaluation:
        nodes, edges = network_inputs(game, states)
        images = nodes[:, node_permutations]  # [B, S, V, F]
        if edges is not None:
            edges = edges[:, node_permutations[:, :, None], node_permutations[:, None, :]]  # [B, S, V, V, R]
        images = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (images, edges))
        evaluations = map_in_parts(lambda part: _apply(game, network, params, *part), images)
        logits, values = jax.tree.map(lambda x: x.reshape(len(nodes), num_symmetries, *x.shape[1:]), evaluations)
        logits = jnp.take_along_axis(logits, jnp.asarray(inverses)[None], axis=2)
        return Evaluation(logits.mean(axis=1), values.mean(axis=1))

    return evaluate


def _apply(game: Game, network: Network, params: Any, nodes: jax.Array, edges: jax.Array | None) -> Evaluation:
    """Evaluates positions by the network alone."""
    prior_logits, output = cast(tuple[jax.Array, jax.Array], network.apply(params, nodes, edges))
    support = () if network.value_support is None else (len(network.value_support),)
    _check_shape(network, "prior logits", "are", prior_logits, (len(nodes), game.num_actions))
    _check_shape(network, "value", "is", output, (len(nodes), *support))
    return Evaluation(prior_logits, expected_value(output, network.value_support))


def _check_shape(network: Network, name: str, verb: str, output: jax.Array, shape: tuple[int, ...]) -> None:
    """Raises UserError when it is traced if an output of the network has another shape."""
    if output.shape != shape:
        kind, found = type(network).__name__, list(output.shape)
        raise UserError(f"network {kind}: its {name} must be {list(shape)}, but {verb} {found}")


def _take_wins(evaluation: Evaluation, wins: jax.Array) -> Evaluation:
    """Replaces the evaluation of states in which one of the actions `wins`, `[B, A]`, is available."""
    can_win = wins.any(axis=-1)
    nothing = jnp.finfo(evaluation.prior_logits.dtype).min
    return Evaluation(
        prior_logits=jnp.where(can_win[:, None] & ~wins, nothing, evaluation.prior_logits),
        value=jnp.where(can_win, 1, evaluation.value),
    )
