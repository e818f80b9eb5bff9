"""Self-play checked on the host: one game of each iteration is replayed by the rules, and its targets are recomputed.

It detects silent errors: a device that computes wrongly, a miscompiled rule, a target with the wrong sign or of another
ply.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np
from flax import struct

from alphagat.errors import AuditError
from alphagat.games.base import Game, StochasticGame
from alphagat.selfplay.auxiliary_targets import AuxiliaryTarget
from alphagat.selfplay.ply import Ply
from alphagat.training.plan import Plan

TOLERANCE = 1e-4  # of sums and targets, in float32


class Audit(struct.PyTreeNode):
    """The plies of one game slot of each device, `[devices]` before each shape.

    Attributes:
      history: `Ply`, `[P + T]` before each shape: what waited for targets, then what was played.
      value_targets: `[T]` float32, of the first T plies, as the replay has them.
      auxiliary: the auxiliary targets of the same plies, by name.
      iteration: `[]` int32, of this board, before this one.
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
        """Checks the first device's game that this process has.

        Raises:
          AuditError: it names the ply and what is wrong.
        """
        here = jax.tree.map(lambda x: np.asarray(x.addressable_data(0))[0], audit)
        # What waited at the start of a run is blank.
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
        """Says what is wrong with a ply, by the rules alone, or returns None."""
        state, action = (jax.tree.map(lambda x: x[ply], each) for each in (history.state, history.action))
        legal, target = np.asarray(state.legal_action_mask), history.policy_target[ply]
        if not 0 <= action < len(legal) or not legal[action]:
            return f"action {action} is not legal"
        if (target < 0).any() or target[~legal].any() or abs(target.sum() - 1) > TOLERANCE:
            return f"the policy target sums to {target.sum():.6f}, {target[~legal].sum():.6f} of it on illegal moves"
        after, rewards, is_over, records = (jax.tree.map(lambda x: x[ply], each) for each in replayed)
        mover = int(state.current_player)
        is_chance = isinstance(self._game, StochasticGame)  # what chance did there is not known
        if not is_chance and bool(is_over) != bool(history.ended[ply] & ~history.truncated[ply]):
            return f"the game has {'' if is_over else 'not '}ended by the rules"
        truncated = history.truncated[ply]
        expected = rewards[mover] + (self._game.truncation_rewards(after)[mover] if truncated else 0)
        if abs(history.reward[ply] - expected) > TOLERANCE:
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
        """Walks back from the end in float64, from one player's view, and compares."""
        expected = lambda_returns(history, self._lambda, self._discount)
        for ply, target in enumerate(targets):
            if abs(target - expected[ply]) > TOLERANCE * max(abs(expected[ply]), 1):
                raise AuditError(
                    f"{self._game.name}, ply {int(history.length[ply]) - 1} of a game: the value target is {target:g}, "
                    f"not {expected[ply]:g}"
                )

    def _check_auxiliary(self, history: Ply, target: AuxiliaryTarget, values: np.ndarray) -> None:
        """Compares each ply's auxiliary target with the one that the end of its game gives."""
        for ply, value in enumerate(values):
            is_known = history.ended[ply:].any()
            if not is_known or not np.allclose(target.audited_target(history, ply), value, rtol=0, atol=TOLERANCE):
                raise AuditError(
                    f"{self._game.name}, ply {int(history.length[ply]) - 1} of a game: the {target.name} target is not "
                    f"{target.meaning}"
                )


def lambda_returns(history: Ply, value_lambda: float, discount: float) -> np.ndarray:
    """Returns `[P + T]` float64 lambda-returns for the players to move (Sutton and Barto 2018, equation 12.2).

    Everything is kept from the view of player 0, and turned at the end: no discount of -1 takes part,
    only that of a value per move.
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
    """Returns a compiled function that replays `[N]` states, actions and `ended` on a CPU.

    It returns the states after the moves, their rewards, whether they are terminal, and the auxiliary records by name.
    """

    def step(state: Any, action: jax.Array) -> Any:
        if isinstance(game, StochasticGame):
            return game.move(state, action)
        return game.step(state, action, jax.random.key(0))

    def replay(states: Any, actions: jax.Array, ended: jax.Array) -> tuple[Any, Any, Any, Any]:
        after = jax.vmap(step)(states, actions)
        records = {each.name: jax.vmap(functools.partial(each.record, game))(after, ended) for each in auxiliary}
        return after, after.rewards, after.terminated, records

    compiled = jax.jit(replay)

    def on_cpu(states: Any, actions: np.ndarray, ended: np.ndarray) -> tuple[Any, Any, Any, Any]:
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            return compiled(states, actions, ended)

    return on_cpu
