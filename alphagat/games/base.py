"""The contract that every game keeps: pure functions of one state; `jax.vmap` makes the batch."""

import abc
import dataclasses
from collections.abc import Iterable
from typing import Any, ClassVar

import jax
import numpy as np
from flax import struct

from alphagat.games import places, svg
from alphagat.graphs.topology import Topology


class State(struct.PyTreeNode):
    """What a search stores per tree node: no features, and no mask where the board tells it.

    Attributes:
      current_player: `[]` int8, the player to move; after the end, as the rules left it.
      rewards: `[num_players]` float32, what the last move paid to each player.
      terminated: `[]` bool.

    Every subclass has `legal_action_mask`, `[A]` bool, as a field or a property: True where legal, and all False
    once terminated.
    """

    current_player: jax.Array
    rewards: jax.Array
    terminated: jax.Array

    @property
    def legal_action_mask(self) -> jax.Array:
        raise NotImplementedError


class Features(struct.PyTreeNode):
    """What the network reads, from the view of the player to move.

    Attributes:
      nodes: `[V, F]` float32.
    """

    nodes: jax.Array


@dataclasses.dataclass(frozen=True)
class Symmetries:
    """Permutations under which a position means the same; row 0 is the identity.

    The transformed features are `nodes[node_permutations[s]]`, and the transformed policy is
    `policy[action_permutations[s]]`: both gather. A symmetry may exchange the players (Hex transposed), since
    features are seen from the player to move: it holds for features, policy and value, not for states.

    Attributes:
      node_permutations: `[S, V]` int32.
      action_permutations: `[S, A]` int32.
    """

    node_permutations: np.ndarray
    action_permutations: np.ndarray

    @property
    def num_symmetries(self) -> int:
        return len(self.node_permutations)


class Game(abc.ABC):
    """The rules of one board. Instances are immutable, hashable by `name`, and hold only static numpy tables.

    Attributes:
      name: how configs, flags and files call it, e.g. `hex:5`.
      num_players: 1 or 2.
      max_plies: no game from `init` lasts longer.
      num_features: F of `observe`.
      value_support: ascending, the returns over which a categorical value head spreads its belief; None where every
        return lies in [-1, 1]. The same for all boards of a family.
      topology: the graph that `observe` describes.
      symmetries: of features, policy and value.
      action_names: `[A]` what a person calls each action, e.g. `b3`.
      player_colours: what a person calls each player, and the colour that drawings give them.
      goal: in one sentence or two, how it is won, for people; empty where nobody has told.
    """

    num_players: ClassVar[int] = 2
    player_colours: ClassVar[tuple[tuple[str, str], ...]] = (("orange", svg.COLOURS[0]), ("blue", svg.COLOURS[1]))
    value_support: ClassVar[tuple[float, ...] | None] = None
    goal: str = ""
    name: str
    max_plies: int
    num_features: int
    topology: Topology
    symmetries: Symmetries
    action_names: tuple[str, ...]

    @property
    def num_actions(self) -> int:
        return self.topology.num_actions

    @abc.abstractmethod
    def init(self, key: jax.Array) -> Any:
        """Returns the first state. `key` matters only where chance moves first."""

    @abc.abstractmethod
    def step(self, state: Any, action: jax.Array, key: jax.Array) -> Any:
        """Plays `action` (`[]` int32, legal). A terminated state comes back unchanged but for rewards, which are 0."""

    @abc.abstractmethod
    def observe(self, state: Any) -> Features:
        """Describes the state to the network, from the view of the player to move."""

    @abc.abstractmethod
    def render(self, state: Any) -> str:
        """Draws the state as text, coordinates included."""

    @abc.abstractmethod
    def render_svg(self, state: Any) -> str:
        """Draws the state as one SVG document, readable on light and dark pages."""

    def node_places(self, state: Any) -> np.ndarray:
        """Returns where `render_svg(state)` shows each node: `[V, 4]` middle x, middle y, width and height in pixels.

        NaN where a node is not shown, as none is unless the game says so; faces then list its actions by name.
        """
        del state
        return places.nowhere(self.topology.num_nodes)

    def action_places(self, state: Any) -> np.ndarray:
        """Returns `[A, 4]`, where something that is said of each action is best drawn: where the action leads to."""
        return self.node_places(state)[self.topology.action_receivers]

    def action_name(self, state: Any, action: int) -> str:
        """Returns what a person calls `action` on the board as `render` draws `state`; the name and the player to move
        tell the action.
        """
        del state
        return self.action_names[action]

    def names_of(self, state: Any, actions: Iterable[int]) -> list[str]:
        """Returns `action_name` of each of the actions of one state."""
        return [self.action_name(state, int(action)) for action in actions]

    def truncation_rewards(self, state: Any) -> jax.Array:
        """Returns `[num_players]` rewards for a game cut at a ply cap: a draw, unless the game names another result."""
        return jax.numpy.zeros_like(state.rewards)

    def ownership(self, state: Any, needed: jax.Array) -> jax.Array | None:
        """Returns `[V]` int8, who holds each node of a game that is over: 1 player 0, -1 player 1, 0 neither.

        None of a game in which that means nothing, as in any that does not say otherwise. Anything where not `needed`
        (`[]` bool), so that a batch may compute less.
        """
        del state, needed
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Game) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class StochasticGame(Game):
    """A game in which chance moves after every move of a player.

    A move leads to an afterstate, a state of the same type from which only `resolve` goes on. What the move pays is
    in the afterstate's `rewards`, and stays there in the state that follows. An afterstate is never terminated.

    Attributes:
      num_chance_outcomes: C.
    """

    num_chance_outcomes: int

    @abc.abstractmethod
    def move(self, state: Any, action: jax.Array) -> Any:
        """Returns the afterstate of a legal `action` (`[]` int32) in a state that is not terminated."""

    @abc.abstractmethod
    def chance_log_probs(self, afterstate: Any) -> jax.Array:
        """Returns `[C]` float32 log probabilities of what chance does next, -inf for the impossible."""

    @abc.abstractmethod
    def resolve(self, afterstate: Any, outcome: jax.Array) -> Any:
        """Returns the state after the possible `outcome` (`[]` int32) of chance."""

    def draw(self, afterstate: Any, key: jax.Array) -> jax.Array:
        """Draws an outcome by its probability; override it where that is quicker than one random number each."""
        return jax.random.categorical(key, self.chance_log_probs(afterstate))

    def step(self, state: Any, action: jax.Array, key: jax.Array) -> Any:
        afterstate = self.move(state, action)
        after = self.resolve(afterstate, self.draw(afterstate, key))
        over = state.replace(rewards=jax.numpy.zeros_like(state.rewards))
        return jax.tree.map(lambda new, old: jax.numpy.where(state.terminated, old, new), after, over)
