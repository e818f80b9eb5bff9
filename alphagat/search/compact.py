"""Search trees with a column for each legal action of a position, instead of one for each action of the game.

The tables of mctx have a column for each action, and every simulation reads and writes whole rows of them. A position
of chess has at most 218 legal actions, of 1,858. Where `max_legal_actions` is below `num_actions`, the search
therefore runs on a `CompactGame`, in which column k of a position is its k-th legal action, and `widen` translates
its output.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from alphagat.games.base import Game, StochasticGame
from alphagat.search.evaluator import Evaluation, Evaluator, evaluate_states
from alphagat.search.tree import RootStatistics, Search, SearchOutput


class CompactState(struct.PyTreeNode):
    """A state and the actions of its columns.

    Attributes:
      state: a state of the game.
      columns: `[K]` int32, the legal actions in ascending order, then `num_actions`.
      num_actions: A, static.
    """

    state: Any
    columns: jax.Array
    num_actions: int = struct.field(pytree_node=False)

    @property
    def current_player(self) -> jax.Array:
        return self.state.current_player

    @property
    def rewards(self) -> jax.Array:
        return self.state.rewards

    @property
    def terminated(self) -> jax.Array:
        return self.state.terminated

    @property
    def legal_action_mask(self) -> jax.Array:
        return self.columns < self.num_actions


class CompactGame:
    """The rules of `game` with `max_legal_actions` actions, reduced to what a search uses."""

    def __init__(self, game: Game):
        self.num_actions, self._game = game.max_legal_actions, game

    def compact(self, state: Any) -> CompactState:
        """Finds the legal actions of one state."""
        legal = state.legal_action_mask
        num_actions = len(legal)
        column = jnp.where(legal, jnp.cumsum(legal) - 1, self.num_actions)  # outside: dropped
        columns = jnp.full(self.num_actions, num_actions, jnp.int32)
        columns = columns.at[column].set(jnp.arange(num_actions, dtype=jnp.int32), mode="drop")
        return CompactState(state, columns, num_actions)

    def step(self, state: CompactState, action: jax.Array, key: jax.Array) -> CompactState:
        played = jnp.minimum(state.columns[action], state.num_actions - 1)  # any action, if the game is over
        return self.compact(self._game.step(state.state, played, key))


def num_columns(game: Game) -> int:
    """Returns the columns for actions in the search trees of a game; those with chance have one for each action."""
    return game.num_actions if isinstance(game, StochasticGame) else game.max_legal_actions


def is_compact(game: Game) -> bool:
    """Returns whether the search trees of a game hold `CompactState`s."""
    return num_columns(game) < game.num_actions


def make_compact_evaluator(evaluate: Evaluator) -> Evaluator:
    """Returns an evaluator of `CompactState`s."""

    def evaluate_compact(params: Any, states: CompactState) -> Evaluation:
        evaluation = evaluate_states(evaluate, params, states.state)
        columns = jnp.minimum(states.columns, states.num_actions - 1)
        return Evaluation(jnp.take_along_axis(evaluation.prior_logits, columns, axis=1), evaluation.value)

    return evaluate_compact


def make_compact_search(game: Game, evaluate: Evaluator, make: Callable[[CompactGame, Evaluator], Search]) -> Search:
    """Returns a search of `[B]` states of the game that runs `make`'s search of compact states."""
    compact_game = CompactGame(game)
    search = make(compact_game, make_compact_evaluator(evaluate))

    def search_compactly(params: Any, key: jax.Array, states: Any, plies: jax.Array) -> SearchOutput:
        compact_states = jax.vmap(compact_game.compact)(states)
        return widen(search(params, key, compact_states, plies), compact_states)

    return search_compactly


def columns_of(states: Any) -> jax.Array | None:
    """Returns the actions of the columns of the states in a tree; None unless they are `CompactState`s."""
    return states.columns if isinstance(states, CompactState) else None


def widen(output: SearchOutput, states: CompactState) -> SearchOutput:
    """Translates the output of a search of `[B]` compact states to `A` actions."""
    root = output.root
    if root is not None:
        alone = jnp.arange(states.num_actions, dtype=jnp.int32)[:, None]  # variations of one move
        alone = jnp.pad(alone, ((0, 0), (0, root.variations.shape[-1] - 1)), constant_values=-1)
        root = RootStatistics(
            visits=spread(root.visits, states, 0),
            action_values=spread(root.action_values, states, jnp.nan),
            variations=spread(root.variations, states, alone),
        )
    action = jnp.take_along_axis(states.columns, output.action[:, None], axis=1)[:, 0]
    return output._replace(
        action=jnp.where(action < states.num_actions, action, 0),  # any action, if the game is over
        policy_target=spread(output.policy_target, states, 0),
        root=root,
    )


def spread(table: jax.Array, states: CompactState, blank: Any) -> jax.Array:
    """Returns `[B, A, ...]`: the values of `table` `[B, K, ...]` at the legal actions, and `blank` at the others."""
    rows = jnp.arange(len(table))[:, None]
    wide = jnp.broadcast_to(jnp.asarray(blank, table.dtype), (len(table), states.num_actions, *table.shape[2:]))
    return wide.at[rows, states.columns].set(table, mode="drop")
