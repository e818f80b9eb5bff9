"""Gumbel and PUCT search over batches of states."""

# The types that mctx declares (chex's arrays, dataclasses, trees) are too wide for a type checker.
# pyright: reportArgumentType=false, reportIndexIssue=false

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import mctx

from alphagat.errors import UserError
from alphagat.games.base import Game, StochasticGame
from alphagat.search.backup import faster_backup
from alphagat.search.compact import CompactGame, columns_of, is_compact, make_compact_search
from alphagat.search.evaluator import Evaluator
from alphagat.search.memory import check_trees, tree_bytes
from alphagat.search.puct import q_values
from alphagat.search.stochastic import make_stochastic_search
from alphagat.search.tree import (
    Search,
    SearchOutput,
    invalid_actions,
    make_output,
    make_recurrent_fn,
    make_root,
    mask_illegal,
    policy_value,
)

ALGORITHMS = "gumbel", "puct"
MAXVISIT_INIT = 50.0  # mctx's default: Q-values weigh in proportion to it plus the visits of the most visited action


def make_gumbel_search(
    game: Game | CompactGame,
    evaluate: Evaluator,
    *,
    num_simulations: int,
    max_num_considered_actions: int,
    qtransform: Callable[[mctx.Tree, jax.Array], jax.Array],
    exploration_plies: int,
    discount: float,
) -> Search:
    """Returns Gumbel AlphaZero's search: sequential halving at the root, completed Q-values (Danihelka et al. 2022,
    sections 3-5).

    In the first `exploration_plies` plies of a game it adds Gumbel noise to the logits; afterwards it is deterministic.
    """
    recurrent_fn = make_recurrent_fn(game, evaluate, discount)

    def search(params: Any, key: jax.Array, states: Any, plies: jax.Array) -> SearchOutput:
        before = make_root(evaluate, params, states)
        output = mctx.gumbel_muzero_policy(
            params,
            key,
            before,
            recurrent_fn,
            num_simulations=num_simulations,
            invalid_actions=invalid_actions(states),
            qtransform=qtransform,
            max_num_considered_actions=max_num_considered_actions,
            gumbel_scale=jnp.where(plies < exploration_plies, 1.0, 0.0)[:, None],
        )
        tree, policy_target = output.search_tree, output.action_weights
        value, columns = policy_value(tree, policy_target), columns_of(tree.embeddings)
        return make_output(tree, output.action, policy_target, value, before.prior_logits, columns)

    return search


def scaled_q_values(tree: mctx.Tree, node: jax.Array, *, value_scale: float, min_value_range: float) -> jax.Array:
    """Returns the completed Q-values `[A]` of a node in units of logits (Danihelka et al. 2022, section 3.4; appendix D
    for actions without a visit).

    Divides them by their range over all actions, but by `min_value_range` at least: a small range is mostly error, and
    stretching it would give errors the weight of won and lost games. Illegal actions count as unvisited, as in mctx.
    """
    q_values = mctx.qtransform_completed_by_mix_value(
        tree, node, value_scale=1.0, maxvisit_init=MAXVISIT_INIT, rescale_values=False
    )
    q_values -= q_values.min()  # a large offset would cost precision
    visit_scale = MAXVISIT_INIT + tree.children_visits[node].max()
    value_range = jnp.maximum(q_values.max() / visit_scale, max(min_value_range, 1e-8))
    return value_scale / value_range * q_values


def make_puct_search(
    game: Game | CompactGame,
    evaluate: Evaluator,
    *,
    num_simulations: int,
    dirichlet_alpha: float,
    dirichlet_fraction: float,
    temperature: float,
    exploration_plies: int,
    discount: float,
) -> Search:
    """Returns AlphaZero's search: PUCT by the score of `search.puct`, with root noise (Silver et al. 2018, methods,
    "Search").

    In the first `exploration_plies` plies of a game the move is sampled from visits ** (1 / temperature); afterwards it
    is the most visited one. The policy target is the visit shares at any temperature.
    """
    recurrent_fn = make_recurrent_fn(game, evaluate, discount)

    def search(params: Any, key: jax.Array, states: Any, plies: jax.Array) -> SearchOutput:
        noise_key, search_key, move_key = jax.random.split(key, 3)
        before = make_root(evaluate, params, states)
        noisy = before
        if dirichlet_fraction:
            mixed = add_root_noise(noise_key, before.prior_logits, states, dirichlet_alpha, dirichlet_fraction)
            noisy = dataclasses.replace(before, prior_logits=mixed)
        output = mctx.muzero_policy(
            params,
            search_key,
            noisy,
            recurrent_fn,
            num_simulations=num_simulations,
            invalid_actions=invalid_actions(states),
            qtransform=q_values,
            dirichlet_fraction=0.0,  # `add_root_noise` instead
        )
        move = draw_move(move_key, output.action_weights, jnp.where(plies < exploration_plies, temperature, 0.0))
        tree, columns = output.search_tree, columns_of(output.search_tree.embeddings)
        return make_output(tree, move, output.action_weights, tree.summary().value, before.prior_logits, columns)

    return search


def add_root_noise(key: jax.Array, prior_logits: jax.Array, states: Any, alpha: float, fraction: float) -> jax.Array:
    """Mixes the priors of `[B, A]` masked logits with Dirichlet noise over the legal actions; returns masked logits.

    mctx's own noise spreads over all actions and loses what falls on illegal ones: on chess, with about 30 of 1,858
    actions legal, almost all of it.
    """
    draws = jax.random.loggamma(key, alpha, prior_logits.shape)  # normalized, a Dirichlet sample
    noise = jax.nn.softmax(mask_illegal(draws, states))
    mixed = (1 - fraction) * jax.nn.softmax(prior_logits) + fraction * noise
    return mask_illegal(jnp.log(mixed), states)


def draw_move(key: jax.Array, visit_shares: jax.Array, temperature: jax.Array) -> jax.Array:
    """Samples one move per row of `[B, A]` shares from shares ** (1 / temperature `[B]`); at 0, the most visited move.

    Unvisited actions are never sampled. mctx's own sampling gives them a small weight that grows with the temperature,
    so it may play illegal moves.
    """
    chex.assert_rank(visit_shares, 2)
    chex.assert_shape(temperature, visit_shares.shape[:1])
    logits = jnp.log(visit_shares)
    logits -= logits.max(axis=-1, keepdims=True)  # 0 for the best: finite at any temperature
    return jax.random.categorical(key, logits / jnp.maximum(temperature, jnp.finfo(logits.dtype).tiny)[:, None])


def make_search(
    game: Game,
    evaluate: Evaluator,
    *,
    algorithm: str,
    num_simulations: int,
    explore: bool,
    max_num_considered_actions: int = 16,
    value_scale: float = 0.5,
    min_value_range: float = 1.0,
    dirichlet_alpha: float = 0.3,
    dirichlet_fraction: float = 0.25,
    temperature: float = 1.0,
    exploration_plies: int = 30,
    discount: float = 1.0,
) -> Search:
    """Returns the `gumbel` or `puct` search; without `explore` it adds no noise and plays its best move.

    With `explore` it explores in the first `exploration_plies` plies of a game; the root noise of PUCT does not end.
    Values are multiplied by `discount` per move.

    Raises:
      UserError: the algorithm is unknown, `num_simulations` is not positive, or the game has chance moves, and
        `algorithm` is PUCT or `discount` is not 1. The search raises it when it is traced, for states that are no batch
        and if its trees do not fit into memory.
    """
    if algorithm not in ALGORITHMS:
        raise UserError(f"config.search.algorithm={algorithm!r}: it must be one of {', '.join(ALGORITHMS)}")
    if num_simulations < 1:
        raise UserError(f"config.search.num_simulations={num_simulations}: it must be at least 1")
    if isinstance(game, StochasticGame):
        if algorithm == "puct":
            raise UserError(f"config.search.algorithm='puct': board {game.name} has chance moves; set it to 'gumbel'")
        if discount != 1:
            raise UserError(f"config.search.discount={discount}: board {game.name} has chance moves; set it to 1.0")
    explored = exploration_plies if explore else 0

    def make(game: Game | CompactGame, evaluate: Evaluator) -> Search:
        if algorithm == "puct":
            return make_puct_search(
                game,
                evaluate,
                num_simulations=num_simulations,
                dirichlet_alpha=dirichlet_alpha,
                dirichlet_fraction=dirichlet_fraction if explore else 0.0,
                temperature=temperature,
                exploration_plies=explored,
                discount=discount,
            )
        options: dict[str, Any] = {
            "num_simulations": num_simulations,
            "max_num_considered_actions": min(
                max_num_considered_actions, game.num_actions
            ),  # mctx's table of visits has a row per considered action
            "qtransform": functools.partial(scaled_q_values, value_scale=value_scale, min_value_range=min_value_range),
            "exploration_plies": explored,
        }
        if isinstance(game, StochasticGame):
            return make_stochastic_search(game, evaluate, **options)
        return make_gumbel_search(game, evaluate, **options, discount=discount)

    search = make_compact_search(game, evaluate, make) if is_compact(game) else make(game, evaluate)

    def search_within_memory(params: Any, key: jax.Array, states: Any, plies: jax.Array) -> SearchOutput:
        _check_batch(states, plies)
        check_trees(len(states.terminated), num_simulations, tree_bytes(game, num_simulations))
        with faster_backup():
            return search(params, key, states, plies)

    return search_within_memory


def _check_batch(states: Any, plies: jax.Array) -> None:
    """Raises UserError unless the states are a batch `[B]` with as many `plies`."""
    shape = jnp.shape(states.terminated)
    if len(shape) != 1:
        raise UserError("states: it must be a batch [B]; for one state, pass games.batches.batch_of_one(state)")
    if jnp.shape(plies) != shape:
        raise UserError(f"plies: its shape is {list(jnp.shape(plies))}; pass one number per state, {list(shape)}")
