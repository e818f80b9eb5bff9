"""Plays games that continue from call to call, and holds their plies until the targets are known."""

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from alphagat.games.base import Game
from alphagat.games.states import select
from alphagat.games.transition import transition
from alphagat.search import Search, SearchOutput
from alphagat.selfplay.auxiliary_targets import AuxiliaryTarget, blank_records, record_all
from alphagat.selfplay.ply import Ply


class GamesInFlight(struct.PyTreeNode):
    """N games and the plies that wait for their targets.

    Every ply waits for the same number of plies. A replay filled in the order in which games end would hold too many
    short games while the first long games are still in progress.

    Attributes:
      state: the positions to move in, `[N]` before each shape; never terminal.
      plies: `[N]` int32, the plies of each game so far.
      waiting: `Ply`, `[P, N]` before each shape, oldest first; `num_waiting_plies` gives P.
    """

    state: Any
    plies: jax.Array
    waiting: Ply


class OpenedGame(NamedTuple):
    state: Any
    plies: jax.Array  # [] int32


def num_waiting_plies(horizon: int, plies_per_iteration: int) -> int:
    """Returns P, the plies that wait between iterations: at least `horizon` - 1.

    Every ply whose target is computed then has as many later plies. P is a positive multiple of `plies_per_iteration`,
    because checkpoints hold no arrays of size 0. The waiting plies take P * N times the bytes of one `Ply`.
    """
    return max(-(-(horizon - 1) // plies_per_iteration), 1) * plies_per_iteration


def make_opener(game: Game, opening_plies: int) -> Callable[[jax.Array], OpenedGame]:
    """Returns `open(key) -> OpenedGame`: a new game after up to L random moves, L uniform in 0 to `opening_plies`.

    A move that would end the game is skipped, so the opening is not terminal and may have fewer than L moves. The key
    splits into initial state, length and moves; that of the moves into one per move, and these into choice and chance.
    """

    def open_game(key: jax.Array) -> OpenedGame:
        init_key, length_key, moves_key = jax.random.split(key, 3)
        length = jax.random.randint(length_key, (), 0, opening_plies + 1)

        def play(opened: OpenedGame, inputs):
            index, key = inputs
            action_key, step_key = jax.random.split(key)
            logits = jnp.where(opened.state.legal_action_mask, 0.0, -jnp.inf)
            state = game.step(opened.state, jax.random.categorical(action_key, logits), step_key)
            continues = (index < length) & ~state.terminated
            state = jax.tree.map(lambda new, old: jnp.where(continues, new, old), state, opened.state)
            return OpenedGame(state, opened.plies + continues), None

        opened = OpenedGame(game.init(init_key), jnp.zeros((), jnp.int32))
        inputs = jnp.arange(opening_plies), jax.random.split(moves_key, opening_plies)
        return jax.lax.scan(play, opened, inputs)[0]

    return open_game


def start_games(
    game: Game,
    key: jax.Array,
    *,
    num_games: int,
    num_waiting: int,
    opening_plies: int,
    auxiliary: Iterable[AuxiliaryTarget] = (),
) -> GamesInFlight:
    """Starts `num_games` games; their `num_waiting` waiting plies are blank placeholders at first."""
    opened = jax.vmap(make_opener(game, opening_plies))(jax.random.split(key, num_games))
    blank = Ply(
        state=opened.state,
        action=jnp.zeros(num_games, jnp.int32),
        policy_target=jnp.zeros((num_games, game.num_actions)),
        is_full=jnp.zeros(num_games, bool),
        policy_weight=jnp.zeros(num_games),
        search_value=jnp.zeros(num_games),
        reward=jnp.zeros(num_games),
        discount=jnp.zeros(num_games),
        ended=jnp.zeros(num_games, bool),
        truncated=jnp.zeros(num_games, bool),
        length=jnp.zeros(num_games, jnp.int32),
        auxiliary=jax.tree.map(lambda x: jnp.broadcast_to(x, (num_games, *x.shape)), blank_records(game, auxiliary)),
    )
    waiting = jax.tree.map(lambda x: jnp.broadcast_to(x[None], (num_waiting, *x.shape)), blank)
    return GamesInFlight(opened.state, opened.plies, waiting)


def draw_full_searches(key: jax.Array, num_plies: int, num_full: int) -> jax.Array:
    """Draws the plies at which every game gets the full search: `[num_plies]` bool, `num_full` of them True."""
    return jax.random.permutation(key, num_plies) < num_full


def weigh_by_surprise(weights: jax.Array, surprise: jax.Array, fraction: float) -> jax.Array:
    """Redistributes `fraction` of the weights `[T, N]` in proportion to weight times `surprise`, with the same sum.

    KataGo's policy surprise weighting ("Other Methods Implemented in KataGo"), applied to loss weights instead of
    sample counts.
    """
    surprising = weights * jnp.maximum(surprise, 0)  # rounding makes a divergence of 0 negative
    total = surprising.sum()
    share = weights.sum() / jnp.where(total > 0, total, 1)
    return jnp.where(total > 0, (1 - fraction) * weights + fraction * share * surprising, weights)


class Payment(NamedTuple):
    """What a move pays the player who made it, and whether the game goes on; the fields are those of `Ply`."""

    reward: jax.Array
    discount: jax.Array
    ended: jax.Array
    truncated: jax.Array


def pay(game: Game, per_move: float, before: Any, after: Any, is_last: jax.Array) -> Payment:
    """Returns the payment of the move from state `before` to `after`.

    A game that goes on after its last ply (`is_last`, `[]` bool) is truncated. `per_move` is as in `transition`.
    """
    paid = transition(before, after, per_move)
    truncated = ~after.terminated & is_last
    cap_reward = game.truncation_rewards(after)[before.current_player]
    return Payment(
        reward=paid.reward + jnp.where(truncated, cap_reward, 0.0),
        discount=jnp.where(truncated, 0.0, paid.discount),
        ended=after.terminated | truncated,
        truncated=truncated,
    )


def make_play(
    game: Game,
    search: Search,
    *,
    num_plies: int,
    max_plies: int,
    opening_plies: int,
    fast_search: Search | None = None,
    surprise_fraction: float = 0.0,
    discount: float = 1.0,
    auxiliary: Iterable[AuxiliaryTarget] = (),
) -> Callable[..., tuple[GamesInFlight, Ply]]:
    """Returns `play(params, key, games, is_full=None) -> (games, history)`: `num_plies` searched moves in every game.

    `history` is a `Ply` with leading axes `[P + T, N]`: the P waiting plies, then the T = `num_plies` new ones. The
    targets of its first T plies are complete, so the returned games no longer hold them. A new game replaces one that
    ends; a game that reaches `max_plies` is truncated with `Game.truncation_rewards`.

    Args:
      fast_search: the search of plies where `is_full` (`[num_plies]` bool, by `draw_full_searches`) is False: playout
        cap randomization (Wu 2019, section 3.1). One draw applies to all games, so each ply runs one search. Without
        it, every ply is searched in full, and `is_full` must not say otherwise.
      surprise_fraction: the share of the policy loss weights that `weigh_by_surprise` redistributes.
      discount: the discount of values per move, as in the search.
      auxiliary: the targets for which each ply stores a record.
    """
    open_games = jax.vmap(make_opener(game, opening_plies))
    pay_all = jax.vmap(functools.partial(pay, game, discount))
    auxiliary = tuple(auxiliary)

    def run_search(is_full: jax.Array, *arguments: Any) -> SearchOutput:
        return search(*arguments) if fast_search is None else jax.lax.cond(is_full, search, fast_search, *arguments)

    def play_ply(params: Any, carry, inputs):
        key, is_full = inputs
        state, plies = carry
        num_games = plies.shape[0]
        search_key, step_key, open_key = jax.random.split(key, 3)
        searched = run_search(is_full, params, search_key, state, plies)
        after = jax.vmap(game.step)(state, searched.action, jax.random.split(step_key, num_games))
        paid = pay_all(state, after, plies + 1 >= max_plies)
        ply = Ply(
            state=state,
            action=searched.action.astype(jnp.int32),
            policy_target=searched.policy_target,
            is_full=jnp.full(num_games, is_full),
            policy_weight=jnp.full(num_games, is_full, jnp.float32),
            search_value=searched.value,
            **paid._asdict(),
            length=plies + 1,
            auxiliary=record_all(game, auxiliary, after, paid.ended),
        )
        opened = open_games(jax.random.split(open_key, num_games))
        state, plies = select(paid.ended, (opened.state, opened.plies), (after, plies + 1))
        return (state, plies), (ply, searched.surprise)

    def play(
        params: Any, key: jax.Array, games: GamesInFlight, is_full: jax.Array | None = None
    ) -> tuple[GamesInFlight, Ply]:
        inputs = jax.random.split(key, num_plies), jnp.ones(num_plies, bool) if is_full is None else is_full
        (state, plies), (played, surprise) = jax.lax.scan(
            functools.partial(play_ply, params), (games.state, games.plies), inputs
        )
        if surprise_fraction:
            assert surprise is not None, "a search for self-play returns the surprise"
            weights = weigh_by_surprise(played.policy_weight, surprise, surprise_fraction)
            played = played.replace(policy_weight=weights)
        history = jax.tree.map(lambda old, new: jnp.concatenate([old, new]), games.waiting, played)
        waiting = jax.tree.map(lambda x: x[num_plies:], history)
        return GamesInFlight(state, plies, waiting), history

    return play
