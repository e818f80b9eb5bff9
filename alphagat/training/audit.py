"""Checks self-play on the host: replays one game per iteration with the rules and recomputes its targets.

It detects silent errors: a faulty device, a miscompiled rule, a target with the wrong sign or of another ply.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import struct

from alphagat.errors import AuditError
from alphagat.games.base import Game, StochasticGame
from alphagat.runtime import sharding
from alphagat.selfplay.auxiliary_targets import AuxiliaryTarget, record_all
from alphagat.selfplay.ply import Ply
from alphagat.training.setup import Setup, auxiliary_targets

TOLERANCE = 1e-4  # absolute, for float32 sums and targets


class Audit(struct.PyTreeNode):
    """The data of one game slot per device, `[devices]` before each shape.

    Attributes:
      history: `Ply`, `[P + T]` before each shape: P plies that waited for targets, then the T plies just played.
      value_targets: `[T]` float32, of the first T plies, as stored in the replay.
      auxiliary: auxiliary targets of the same plies, by name.
      iteration: `[]` int32, iterations of this board before this one.
    """

    history: Ply
    value_targets: jax.Array
    auxiliary: dict[str, jax.Array]
    iteration: jax.Array


class Replayed(NamedTuple):
    """What the rules say of `N` plies of a game, given their positions and moves; `[N]` before each shape.

    Attributes:
      legal: `[A]` bool, the legal actions before the move.
      after: the states after it.
      rewards: `[num_players]`.
      truncation: `[num_players]`, what a truncation after the move pays.
      is_over: `[]` bool, whether the move ends the game.
      records: auxiliary records by name, where the game ended.
    """

    legal: Any
    after: Any
    rewards: Any
    truncation: Any
    is_over: Any
    records: dict[str, Any]


class Auditor:
    """Checks the audits of one board."""

    def __init__(self, setup: Setup):
        self._game, self._plan = setup.game, setup.plan
        self._lambda, self._discount = setup.config.selfplay.value_lambda, setup.config.search.discount
        self._auxiliary = tuple(auxiliary_targets(setup.config))
        self._replay = _make_replay(setup.game, self._auxiliary)

    def check(self, audit: Audit) -> None:
        """Checks the game of the first device that this process addresses.

        Raises:
          AuditError: names the ply and the error.
        """
        here = jax.tree.map(lambda x: np.asarray(x.addressable_data(0))[0], audit)
        replayed = self._replay(here.history)
        # The plies that wait at the start of a run are blank.
        blank = max(self._plan.num_waiting - int(here.iteration) * self._plan.plies_per_iteration, 0)
        history, replayed = jax.tree.map(lambda x: x[blank:], (here.history, replayed))
        for ply in range(len(history.action)):
            error = self._find_error(history, replayed, ply)
            if error:
                raise self._error(history, ply, error)
        if not blank:
            self._check_targets(history, here.value_targets)
            for target in self._auxiliary:
                self._check_auxiliary(history, target, here.auxiliary[target.name])

    def _error(self, history: Ply, ply: int, text: str) -> AuditError:
        return AuditError(f"{self._game.name}, ply {int(history.length[ply]) - 1} of a game: {text}")

    def _find_error(self, history: Ply, all_replayed: Replayed, ply: int) -> str | None:
        """Returns the first violation of the rules at a ply, or None."""
        state, action, replayed = jax.tree.map(lambda x: x[ply], (history.state, history.action, all_replayed))
        legal, policy = replayed.legal, history.policy_target[ply]
        if not 0 <= action < len(legal) or not legal[action]:
            return f"action {action} is not legal"
        if (policy < 0).any() or policy[~legal].any() or not abs(policy.sum() - 1) <= TOLERANCE:  # NaN, too
            return f"the policy target sums to {policy.sum():.6f}, {policy[~legal].sum():.6f} of it on illegal moves"
        mover = int(state.current_player)
        is_chance = isinstance(self._game, StochasticGame)  # the outcomes of chance are not recorded
        if not is_chance and bool(replayed.is_over) != bool(history.ended[ply] & ~history.truncated[ply]):
            return f"the game has {'' if replayed.is_over else 'not '}ended by the rules"
        is_at_limit = history.length[ply] >= self._plan.max_plies
        if (history.truncated[ply] and not is_at_limit) or (is_at_limit and not history.ended[ply]):
            cut = "truncated" if history.truncated[ply] else "not truncated"
            return f"the game is {cut} after {history.length[ply]} plies, with a limit of {self._plan.max_plies}"
        expected = replayed.rewards[mover] + (replayed.truncation[mover] if history.truncated[ply] else 0)
        if not abs(history.reward[ply] - expected) <= TOLERANCE:
            return f"the reward is {history.reward[ply]:g}, not {expected:g}"
        for target in self._auxiliary:
            recorded = history.auxiliary[target.name][ply]
            if history.ended[ply] and not np.allclose(replayed.records[target.name], recorded, rtol=0, atol=TOLERANCE):
                return f"the recorded {target.name} is not {target.meaning}"
        if history.ended[ply] or ply + 1 == len(history.action) or is_chance:
            return None
        following = jax.tree.map(lambda x: x[ply + 1], history.state)
        same = jax.tree.map(np.array_equal, replayed.after, following)
        if not all(jax.tree.leaves(same)):
            return "the next position is not what the move leads to"
        return None

    def _check_targets(self, history: Ply, targets: np.ndarray) -> None:
        """Compares the value targets with float64 lambda-returns."""
        expected = lambda_returns(history, self._lambda, self._discount)
        for ply, target in enumerate(targets):
            if not abs(target - expected[ply]) <= TOLERANCE * max(abs(expected[ply]), 1):
                raise self._error(history, ply, f"the value target is {target:g}, not {expected[ply]:g}")

    def _check_auxiliary(self, history: Ply, target: AuxiliaryTarget, values: np.ndarray) -> None:
        """Compares the auxiliary target of each ply with the one derived from the end of its game."""
        for ply, value in enumerate(values):
            is_known = history.ended[ply:].any()
            if not is_known or not np.allclose(target.audited_target(history, ply), value, rtol=0, atol=TOLERANCE):
                raise self._error(history, ply, f"the {target.name} target is not {target.meaning}")


def lambda_returns(history: Ply, value_lambda: float, discount: float) -> np.ndarray:
    """Returns `[P + T]` float64 lambda-returns for the players to move (Sutton and Barto 2018, equation 12.2).

    Computes from the perspective of player 0 and converts at the end, so `discount` is the discount per move without a
    sign change.
    """
    signs = np.where(np.asarray(history.state.current_player) == 0, 1.0, -1.0)
    values, rewards = signs * history.search_value.astype(np.float64), signs * history.reward.astype(np.float64)
    returns = np.zeros(len(values))
    for ply in reversed(range(len(values))):
        if history.ended[ply]:
            returns[ply] = rewards[ply]
        elif ply + 1 == len(values):
            returns[ply] = values[ply]
        else:
            mixed = (1 - value_lambda) * values[ply + 1] + value_lambda * returns[ply + 1]
            returns[ply] = rewards[ply] + discount * mixed
    return signs * returns


def _make_replay(game: Game, auxiliary: tuple[AuxiliaryTarget, ...]) -> Callable[[Ply], Replayed]:
    """Returns a function that replays the plies of one game, `[N]` before each shape, on a CPU if there is one.

    One program computes all that the rules say: a single operation outside it could wait on a GPU for the iteration
    that runs there.
    """

    def step(state: Any, action: jax.Array) -> Any:
        if isinstance(game, StochasticGame):
            return game.move(state, action)
        return game.step(state, action, jax.random.key(0))

    @jax.jit
    def replay(states: Any, actions: jax.Array, ended: jax.Array) -> Replayed:
        after = jax.vmap(step)(states, actions)
        return Replayed(
            legal=jax.vmap(lambda state: state.legal_action_mask)(states),
            after=after,
            rewards=after.rewards,
            truncation=jax.vmap(game.truncation_rewards)(after),
            is_over=after.terminated,
            records=record_all(game, auxiliary, after, ended),
        )

    def on_host(history: Ply) -> Replayed:
        plies = history.state, history.action, history.ended
        return jax.device_get(replay(*jax.device_put(plies, sharding.host_device())))

    return on_host
