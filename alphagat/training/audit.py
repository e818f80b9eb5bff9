"""Checks self-play on the host: replays one game per iteration with the rules and recomputes its targets.

It detects silent errors: a faulty device, a miscompiled rule, a target with the wrong sign or of another ply.
"""

from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np
from flax import struct

from alphagat.errors import AuditError
from alphagat.games.base import Game, StochasticGame
from alphagat.runtime import sharding
from alphagat.selfplay.auxiliary_targets import AuxiliaryTarget, record_all
from alphagat.selfplay.ply import Ply
from alphagat.training.plan import Plan

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


class Auditor:
    """Checks the audits of one board."""

    def __init__(
        self, game: Game, plan: Plan, value_lambda: float, discount: float, auxiliary: Iterable[AuxiliaryTarget] = ()
    ):
        self._game, self._plan, self._lambda, self._discount = game, plan, value_lambda, discount
        self._auxiliary = tuple(auxiliary)
        self._replay = _make_replay(game, self._auxiliary)

    def check(self, audit: Audit) -> None:
        """Checks the game of the first device that this process addresses.

        Raises:
          AuditError: names the ply and the error.
        """
        here = jax.tree.map(lambda x: np.asarray(x.addressable_data(0))[0], audit)
        # The plies that wait at the start of a run are blank.
        blank = max(self._plan.num_waiting - int(here.iteration) * self._plan.plies_per_iteration, 0)
        history: Ply = jax.tree.map(lambda x: x[blank:], here.history)
        replayed = jax.tree.map(
            np.asarray, self._replay(history.state, np.asarray(history.action), np.asarray(history.ended))
        )
        for ply in range(len(history.action)):
            error = self._find_error(history, replayed, ply)
            if error:
                raise AuditError(f"{self._game.name}, ply {int(history.length[ply]) - 1} of a game: {error}")
        if not blank:
            self._check_targets(history, here.value_targets)
            for target in self._auxiliary:
                self._check_auxiliary(history, target, here.auxiliary[target.name])

    def _find_error(self, history: Ply, replayed: Any, ply: int) -> str | None:
        """Returns the first violation of the rules at a ply, or None."""
        state, action = (jax.tree.map(lambda x: x[ply], each) for each in (history.state, history.action))
        legal, target = np.asarray(state.legal_action_mask), history.policy_target[ply]
        if not 0 <= action < len(legal) or not legal[action]:
            return f"action {action} is not legal"
        if (target < 0).any() or target[~legal].any() or not abs(target.sum() - 1) <= TOLERANCE:  # NaN, too
            return f"the policy target sums to {target.sum():.6f}, {target[~legal].sum():.6f} of it on illegal moves"
        after, rewards, is_over, records = (jax.tree.map(lambda x: x[ply], each) for each in replayed)
        mover = int(state.current_player)
        is_chance = isinstance(self._game, StochasticGame)  # the outcomes of chance are not recorded
        if not is_chance and bool(is_over) != bool(history.ended[ply] & ~history.truncated[ply]):
            return f"the game has {'' if is_over else 'not '}ended by the rules"
        truncated = history.truncated[ply]
        expected = rewards[mover] + (self._game.truncation_rewards(after)[mover] if truncated else 0)
        if not abs(history.reward[ply] - expected) <= TOLERANCE:
            return f"the reward is {history.reward[ply]:g}, not {expected:g}"
        for target in self._auxiliary:
            recorded = history.auxiliary[target.name][ply]
            if history.ended[ply] and not np.allclose(records[target.name], recorded, rtol=0, atol=TOLERANCE):
                return f"the recorded {target.name} is not {target.meaning}"
        if history.ended[ply] or ply + 1 == len(history.action) or is_chance:
            return None
        following = jax.tree.map(lambda x: x[ply + 1], history.state)
        same = jax.tree.map(np.array_equal, after, following)
        if not all(jax.tree.leaves(same)):
            return "the next position is not what the move leads to"
        return None

    def _check_targets(self, history: Ply, targets: np.ndarray) -> None:
        """Compares the value targets with float64 lambda-returns."""
        expected = lambda_returns(history, self._lambda, self._discount)
        for ply, target in enumerate(targets):
            if not abs(target - expected[ply]) <= TOLERANCE * max(abs(expected[ply]), 1):
                raise AuditError(
                    f"{self._game.name}, ply {int(history.length[ply]) - 1} of a game: the value target is {target:g}, "
                    f"not {expected[ply]:g}"
                )

    def _check_auxiliary(self, history: Ply, target: AuxiliaryTarget, values: np.ndarray) -> None:
        """Compares the auxiliary target of each ply with the one derived from the end of its game."""
        for ply, value in enumerate(values):
            is_known = history.ended[ply:].any()
            if not is_known or not np.allclose(target.audited_target(history, ply), value, rtol=0, atol=TOLERANCE):
                raise AuditError(
                    f"{self._game.name}, ply {int(history.length[ply]) - 1} of a game: the {target.name} target is not "
                    f"{target.meaning}"
                )


def lambda_returns(history: Ply, value_lambda: float, discount: float) -> np.ndarray:
    """Returns `[P + T]` float64 lambda-returns for the players to move (Sutton and Barto 2018, equation 12.2).

    Computes in the view of player 0 and converts at the end, so `discount` is the discount per move without a sign
    change.
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


def _make_replay(
    game: Game, auxiliary: tuple[AuxiliaryTarget, ...]
) -> Callable[[Any, np.ndarray, np.ndarray], tuple[Any, Any, Any, Any]]:
    """Returns a compiled function that replays `[N]` states, actions and `ended` flags, on a CPU if there is one.

    It returns the states after the moves, their rewards, whether they are terminal, and the auxiliary records by name.
    """

    def step(state: Any, action: jax.Array) -> Any:
        if isinstance(game, StochasticGame):
            return game.move(state, action)
        return game.step(state, action, jax.random.key(0))

    def replay(states: Any, actions: jax.Array, ended: jax.Array) -> tuple[Any, Any, Any, Any]:
        after = jax.vmap(step)(states, actions)
        return after, after.rewards, after.terminated, record_all(game, auxiliary, after, ended)

    compiled = jax.jit(replay)

    def on_host(states: Any, actions: np.ndarray, ended: np.ndarray) -> tuple[Any, Any, Any, Any]:
        with jax.default_device(sharding.host_device()):
            return compiled(states, actions, ended)

    return on_host
