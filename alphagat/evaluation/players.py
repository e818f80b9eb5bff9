"""Players: policies over batches of states."""

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from alphagat.errors import UserError
from alphagat.evaluation.mcts import make_mcts, most_visited
from alphagat.evaluation.rollout import uniform_actions
from alphagat.evaluation.solvers import make_solved_table, position_code
from alphagat.games.base import Game, StochasticGame
from alphagat.search import Search

Act = Callable[[Any, jax.Array, Any], jax.Array]  # (params, key, states [B]) -> actions [B]


@dataclasses.dataclass(frozen=True, eq=False)
class Player:
    """A named policy.

    Programs are compiled per `act` and take `params` as an argument, so players with the same `act` share a program.
    The functions below return the same `act` for the same arguments.

    Attributes:
      name: shown in reports.
      act: `act(params, key, states [B])` returns `[B]` int32 actions, legal in every non-terminal state. Actions in
        terminal states are ignored.
      params: a pytree of arrays.
    """

    name: str
    act: Act
    params: Any = None


@functools.lru_cache(maxsize=32)
def compile_act(act: Act) -> Callable:
    return jax.jit(act)


def random_player(game: Game) -> Player:
    """Plays uniformly random legal moves."""
    del game
    return Player("random", _random_act)


def mcts_player(game: Game, num_simulations: int) -> Player:
    """Plays the most visited move of `num_simulations` simulations with random rollouts.

    Raises:
      UserError: the game has chance moves, which this search does not support.
    """
    if isinstance(game, StochasticGame):
        raise UserError(f"opponent mcts:{num_simulations}: board {game.name} has chance moves; take random")
    return Player(f"mcts:{num_simulations}", _make_mcts_act(game, num_simulations))


def search_player(name: str, search: Search, params: Any) -> Player:
    """Plays the action of a network search."""
    return Player(name, _make_search_act(search), params)


def solver_player(game: Game) -> Player:
    """Plays uniformly random moves among those of the best exact value.

    Raises:
      UserError: the board has no table of exact values.
    """
    return Player("solver", _make_solver_act(game), jnp.asarray(make_solved_table(game)))


class Opponent(NamedTuple):
    """A kind of player that needs no trained network.

    Attributes:
      usage: how to write its name.
      pattern: the regular expression of its name; a group holds the argument.
      make: `make(game, *groups)`.
    """

    usage: str
    pattern: str
    make: Callable[..., Player]


# by the text before the first colon of the name
OPPONENTS = {
    "random": Opponent("random", "random", random_player),
    "mcts": Opponent("mcts:N", "mcts:([1-9][0-9]*)", lambda game, number: mcts_player(game, int(number))),
    "solver": Opponent("solver", "solver", solver_player),
}


def make_opponent(game: Game, spec: str) -> Player:
    """Makes the player called `random`, `mcts:N` (N simulations) or `solver` (boards with an exact table).

    Raises:
      UserError: the player is unknown or does not support this board.
    """
    opponent = OPPONENTS.get(spec.partition(":")[0])
    if opponent is None or (match := re.fullmatch(opponent.pattern, spec, re.ASCII)) is None:
        raise UserError(
            f"opponent {spec!r} is unknown: take random, mcts:N with N simulations (e.g. mcts:100) or solver"
        )
    return opponent.make(game, *match.groups())


def _random_act(params: None, key: jax.Array, states: Any) -> jax.Array:
    del params
    legal = states.legal_action_mask
    return uniform_actions(jax.random.bits(key, legal.shape[:1], jnp.uint32), legal)


@functools.lru_cache(maxsize=64)
def _make_mcts_act(game: Game, num_simulations: int) -> Act:
    search = make_mcts(game, num_simulations)

    def act(params: None, key: jax.Array, states: Any) -> jax.Array:
        del params
        search_key, choice_key = jax.random.split(key)
        return most_visited(choice_key, search(search_key, states))

    return act


@functools.lru_cache(maxsize=64)
def _make_search_act(search: Search) -> Act:
    def act(params: Any, key: jax.Array, states: Any) -> jax.Array:
        # Only the temperature of self-play depends on plies.
        plies = jnp.zeros(states.terminated.shape, jnp.int32)
        return search(params, key, states, plies).action

    return act


@functools.lru_cache(maxsize=64)
def _make_solver_act(game: Game) -> Act:
    def act(best_moves: jax.Array, key: jax.Array, states: Any) -> jax.Array:
        best = best_moves[position_code(game, states)]  # [B, A]
        return uniform_actions(jax.random.bits(key, best.shape[:1], jnp.uint32), best)

    return act
