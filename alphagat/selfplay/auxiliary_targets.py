"""Auxiliary targets: optional predictions beside policy and value.

The target called NAME is trained if `config.network.NAME_head` is set, with the weight `config.learner.NAME_weight`.
`alphagat.networks.auxiliary_heads` has the head of the same name. A new target needs its declaration here, its head,
the two config fields, and a test.
"""

import abc
import functools
from collections.abc import Iterable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.games.base import Game
from alphagat.games.states import select
from alphagat.games.symmetries import Symmetries, permute_actions, permute_nodes
from alphagat.selfplay.ply import Ply


class AuxiliaryTarget(abc.ABC):
    """Declares one auxiliary target.

    Attributes:
      name: the name of the head, of the weight and of the metric `train/NAME_loss`.
      meaning: completes an error message: "the ownership target is not ...".
      permuted: the axis that symmetries of the board permute, or None.
    """

    name: str
    meaning: str
    permuted: Literal["nodes", "actions"] | None = None

    @abc.abstractmethod
    def can_teach(self, game: Game) -> bool:
        """Returns whether `game` defines this target."""

    @abc.abstractmethod
    def blank(self, game: Game) -> jax.Array:
        """Returns zeros with the shape and dtype of one record; a target has the same shape and dtype."""

    @abc.abstractmethod
    def record(self, game: Game, state: Any, ended: jax.Array) -> jax.Array:
        """Returns the record of one ply, given the state after its move; it is read only if the game `ended` there."""

    @abc.abstractmethod
    def targets(self, history: Ply) -> jax.Array:
        """Returns the target of each ply from the records `[T, N, ...]`; zeros where the end of the game is unknown."""

    @abc.abstractmethod
    def recorded_targets(self, ends: Any, players: Any, to_go: Any) -> Any:
        """Returns the targets of positions of recorded games, as `targets` does.

        Args:
          ends: the record of the last ply of each position's game, `[N, ...]`.
          players: `[N]`, the player to move.
          to_go: `[N]`, the number of later plies.
        """

    @abc.abstractmethod
    def audited_target(self, history: Ply, ply: int) -> np.ndarray:
        """Returns the target of one ply of one game's history `[T]`, computed on the host independently of `targets`.

        The history holds the end of that game.
        """

    @abc.abstractmethod
    def loss(self, prediction: jax.Array, target: jax.Array) -> jax.Array:
        """Returns the loss of each example, `[B]`; `target` is float32."""

    def permute(self, target: jax.Array, index: jax.Array, symmetries: Symmetries) -> jax.Array:
        """Applies symmetry `index` `[B]` to a batch of targets."""
        if self.permuted == "nodes":
            return permute_nodes(target[..., None], index, symmetries)[..., 0]
        return permute_actions(target, index, symmetries) if self.permuted == "actions" else target


class Ownership(AuxiliaryTarget):
    """Who holds each node at the end of the game: 1 the player to move, -1 the opponent, 0 neither (Wu 2019, section
    4.1); `[V]` int8.
    """

    name = "ownership"
    meaning = "who holds each node at the end of the game"
    permuted = "nodes"

    def can_teach(self, game: Game) -> bool:
        return type(game).ownership is not Game.ownership

    def blank(self, game: Game) -> jax.Array:
        return jnp.zeros(game.topology.num_nodes, jnp.int8)

    def record(self, game: Game, state: Any, ended: jax.Array) -> jax.Array:
        ownership = game.ownership(state, ended)
        assert ownership is not None, "a run checks `can_teach` first"
        return ownership

    def targets(self, history: Ply) -> jax.Array:
        ends = last_records(history.auxiliary[self.name], history.ended)
        return self._seen_by(history.state.current_player, ends)

    def recorded_targets(self, ends: Any, players: Any, to_go: Any) -> Any:
        return self._seen_by(players, ends)

    def _seen_by(self, players: Any, ownership: Any) -> Any:
        return ownership * (1 - 2 * players[..., None]).astype(ownership.dtype)

    def audited_target(self, history: Ply, ply: int) -> np.ndarray:
        end = ply + int(np.argmax(history.ended[ply:]))
        sign = 1 if history.state.current_player[ply] == 0 else -1
        return sign * np.asarray(history.auxiliary[self.name][end])

    def loss(self, prediction: jax.Array, target: jax.Array) -> jax.Array:
        return jnp.square(prediction - target).mean(-1)


def blank_records(game: Game, targets: Iterable[AuxiliaryTarget]) -> dict[str, jax.Array]:
    """Returns the blank record of each target by name."""
    return {target.name: target.blank(game) for target in targets}


def record_all(game: Game, targets: Iterable[AuxiliaryTarget], states: Any, ended: jax.Array) -> dict[str, jax.Array]:
    """Returns the records of each target by name, given the `[N]` states after the moves and whether games `ended`."""
    return {target.name: jax.vmap(functools.partial(target.record, game))(states, ended) for target in targets}


def last_records(records: jax.Array, ended: jax.Array) -> jax.Array:
    """Returns for each ply the record `[T, N, ...]` of the last ply of its game; zeros if the game has not ended."""

    def backward(later: jax.Array, ply: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        ended, record = ply
        last = select(ended, record, later)
        return last, last

    return jax.lax.scan(backward, jnp.zeros_like(records[0]), (ended, records), reverse=True)[1]


AUXILIARY_TARGETS: dict[str, AuxiliaryTarget] = {target.name: target for target in (Ownership(),)}
