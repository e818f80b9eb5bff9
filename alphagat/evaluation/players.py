"""Players: policies over batches of states."""

import dataclasses
import functools
import pkgutil
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.errors import UserError
from alphagat.evaluation.mcts import make_mcts, most_visited
from alphagat.evaluation.rollout import uniform_actions
from alphagat.evaluation.solvers import make_solved_table, position_code
from alphagat.games.base import Game, StochasticGame
from alphagat.games.batches import chunks, take
from alphagat.opponents import USAGES, find_opponent
from alphagat.search import Search
from alphagat.wording import counted

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
    act: Act = dataclasses.field(repr=False)
    params: Any = dataclasses.field(default=None, repr=False)


def choose(act: Act, params: Any, key: jax.Array, states: Any) -> tuple[jax.Array, jax.Array]:
    """Returns the actions of `act`, `[B]` int32, and whether each is legal, `[B]` bool.

    Raises:
      UserError: when it is traced; the actions are not `[B]` integers.
    """
    actions, size = jnp.asarray(act(params, key, states)), len(states.terminated)
    if actions.shape != (size,) or not jnp.issubdtype(actions.dtype, jnp.integer):
        found = f"{actions.dtype} {list(actions.shape)}"
        raise UserError(f"actions of a player: they must be int32 [{size}], one for each state, but are {found}")
    legal = states.legal_action_mask
    inside = (actions >= 0) & (actions < legal.shape[1])
    is_legal = inside & jnp.take_along_axis(legal, jnp.where(inside, actions, 0)[:, None], axis=1)[:, 0]
    return actions.astype(jnp.int32), is_legal


def check_legal(name: str, num_illegal: int) -> None:
    """Raises UserError if the player called `name` made illegal moves."""
    if num_illegal:
        moves = counted(num_illegal, "illegal move")
        raise UserError(f"player {name!r}: it made {moves}; choose among the actions of states.legal_action_mask")


@functools.lru_cache(maxsize=32)
def compile_act(act: Act) -> Callable:
    return jax.jit(functools.partial(choose, act))


def act_in_batches(player: Player, key: jax.Array, states: Any, rows: np.ndarray, size: int) -> np.ndarray:
    """Returns the player's action in each of the `rows` of `states`, computed in batches of `size`.

    Raises:
      UserError: an action is illegal.
    """
    act, actions = compile_act(player.act), np.zeros(len(rows), np.int32)
    for part, padded in chunks(len(rows), size):
        asked, is_legal = act(player.params, jax.random.fold_in(key, part[0]), take(states, rows[padded]))
        actions[part] = np.asarray(asked)[: len(part)]
        check_legal(player.name, int((~np.asarray(is_legal)[: len(part)]).sum()))
    return actions


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
        raise UserError(f"opponent mcts:{num_simulations}: board {game.name} has chance moves; use random")
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


def make_opponent(game: Game, name: str) -> Player:
    """Makes a player of `opponents.OPPONENTS`.

    Raises:
      UserError: there is no such player, or it does not play this board.
    """
    found = find_opponent(name)
    if found is None:
        raise UserError(f"opponent {name!r}: there is no such player; use one of {USAGES}")
    opponent, numbers = found
    return pkgutil.resolve_name(opponent.implementation)(game, *numbers)


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
        # Only the exploration of self-play depends on plies.
        plies = jnp.zeros(states.terminated.shape, jnp.int32)
        return search(params, key, states, plies).action

    return act


@functools.lru_cache(maxsize=64)
def _make_solver_act(game: Game) -> Act:
    def act(best_moves: jax.Array, key: jax.Array, states: Any) -> jax.Array:
        best = best_moves[position_code(game, states)]  # [B, A]
        return uniform_actions(jax.random.bits(key, best.shape[:1], jnp.uint32), best)

    return act
