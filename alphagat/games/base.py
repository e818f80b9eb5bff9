"""The interface of games: pure functions of one state, batched by `jax.vmap`."""

import abc
from collections.abc import Iterable
from typing import Any, ClassVar

import jax
import numpy as np
from flax import struct

from alphagat.games import places, svg
from alphagat.games.symmetries import Symmetries
from alphagat.graphs.topology import Topology


class State(struct.PyTreeNode):
    """The data that a search stores per tree node; features, and masks that follow from the board, are recomputed.

    Attributes:
      current_player: `[]` int8, the player to move; unspecified by the interface once terminated.
      rewards: `[num_players]` float32, each player's reward for the last move.
      terminated: `[]` bool.

    Every subclass has the property `legal_action_mask`, `[A]` bool: True where legal, and all False once terminated. It
    also works on batches of states. A mask that is stored needs a field of another name.
    """

    current_player: jax.Array
    rewards: jax.Array
    terminated: jax.Array

    @property
    def legal_action_mask(self) -> jax.Array:
        raise NotImplementedError(f"{type(self).__name__} has no property legal_action_mask; define it")


def absorb(state: Any, after: Any) -> Any:
    """Returns `after`, the state after a move in `state`; if that was terminated, `state` itself with rewards of 0."""
    over = state.replace(rewards=jax.numpy.zeros_like(state.rewards))
    return jax.tree.map(lambda old, new: jax.numpy.where(state.terminated, old, new), over, after)


class Game(abc.ABC):
    """The rules of one board. Instances are immutable, hashable by `name`, and hold only static numpy tables.

    Attributes:
      name: the name in configs, flags and files, e.g. `hex:5`.
      num_players: 1 or 2.
      max_plies: an upper bound on the length of games from `init`.
      num_features: F of `observe`.
      history_features: columns of `observe` that describe only how a position was reached. Openings that differ in
        nothing else count as equal.
      value_support: ascending, the support of a categorical value head; None if every return lies in [-1, 1]. Equal for
        all boards of a family.
      topology: the graph whose nodes `observe` describes.
      symmetries: of features, policy and value.
      action_names: `[A]` human-readable names, e.g. `b3`.
      player_colours: each player's name and colour in drawings.
      goal: one or two sentences on how to win, for display; may be empty.
      achievement_name: what `achievement` counts, e.g. `largest tile`; empty if the game has none.
    """

    num_players: ClassVar[int] = 2
    player_colours: ClassVar[tuple[tuple[str, str], ...]] = (("orange", svg.COLOURS[0]), ("blue", svg.COLOURS[1]))
    value_support: ClassVar[tuple[float, ...] | None] = None
    history_features: ClassVar[tuple[int, ...]] = ()
    goal: str = ""
    achievement_name: ClassVar[str] = ""
    name: str
    max_plies: int
    num_features: int
    topology: Topology
    symmetries: Symmetries
    action_names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"make_game({self.name!r})"

    @property
    def family(self) -> str:
        """The name that boards with the same relations share, e.g. `mnk` for `tic_tac_toe`."""
        return self.topology.vocabulary.family

    @property
    def num_actions(self) -> int:
        return self.topology.num_actions

    @property
    def max_legal_actions(self) -> int:
        """An upper bound on the legal actions of a position. If it is below A, search trees need less memory."""
        return self.num_actions

    @property
    def has_fixed_names(self) -> bool:
        """Whether an action has the same name in every state; not so in chess."""
        return type(self).action_name is Game.action_name

    @abc.abstractmethod
    def init(self, key: jax.Array) -> Any:
        """Returns the initial state. `key` matters only if the game draws it."""

    @abc.abstractmethod
    def step(self, state: Any, action: jax.Array, key: jax.Array) -> Any:
        """Plays `action` (`[]` int32, legal). A terminated state is returned unchanged except for zero rewards."""

    @abc.abstractmethod
    def observe(self, state: Any) -> jax.Array:
        """Returns `[V, F]` float32, the features of each node, from the perspective of the player to move."""

    def edges(self, state: Any) -> jax.Array | None:
        """Returns `[V, V, R]` float32 by (receiver, sender, relation): how strong each edge is in each relation.

        None, the default: the edges of `topology`. Only a game with `topology.edges_vary` returns edges of its own:
        at least 0, with 0 in all relations where there is no edge, and only between nodes that have an edge in
        `topology`. Every node needs an edge to itself. A strength of 1 in one relation is an edge of that type; other
        strengths express lengths and weights.
        """
        del state
        return None

    @abc.abstractmethod
    def render(self, state: Any) -> str:
        """Draws the state as text with coordinates."""

    @abc.abstractmethod
    def render_svg(self, state: Any) -> str:
        """Draws the state as one SVG document, readable on light and dark pages."""

    def node_places(self, state: Any) -> np.ndarray:
        """Returns `[V, 4]` pixel positions of nodes in `render_svg(state)`: centre x, centre y, width and height.

        NaN for nodes that are not drawn, which is the default; user interfaces then list actions by name.
        """
        del state
        return places.nowhere(self.topology.num_nodes)

    def action_places(self, state: Any) -> np.ndarray:
        """Returns `[A, 4]`, the position at which each action is annotated: that of its receiver."""
        return self.node_places(state)[self.topology.action_receivers]

    def action_name(self, state: Any, action: int) -> str:
        """Returns the name of `action` in the coordinates that `render` draws.

        The name and the player to move determine the action.
        """
        del state
        return self.action_names[action]

    def names_of(self, state: Any, actions: Iterable[int]) -> list[str]:
        """Returns `action_name` of each of the actions of one state."""
        return [self.action_name(state, int(action)) for action in actions]

    def counts(self, state: Any) -> tuple[float, float] | None:
        """Returns each player's discs or points where these decide the game; None, the default, where they do not."""
        del state
        return None

    def achievement(self, state: Any) -> jax.Array | None:
        """Returns `[]` int32, the number, besides the score, by which people judge a finished one-player game.

        None, the default, if there is no such number.
        """
        del state
        return None

    def truncation_rewards(self, state: Any) -> jax.Array:
        """Returns `[num_players]`, the reward for truncation at a ply cap, in addition to that of the last move; by
        default 0, a draw.
        """
        return jax.numpy.zeros_like(state.rewards)

    def winning_actions(self, state: Any) -> jax.Array | None:
        """Returns `[A]` bool, actions that win at once; illegal ones are ignored. Undefined in terminal states.

        None, the default, leaves them to the network and the search. A game should name those that are rare in
        self-play and common against other players. It need not name all.
        """
        del state
        return None

    def ownership(self, state: Any, needed: jax.Array) -> jax.Array | None:
        """Returns `[V]` int8, the owner of each node in a terminal state: 1 player 0, -1 player 1, 0 neither.

        None, the default, if a game has no ownership. Undefined if not `needed` (`[]` bool), which lets a batch skip
        the computation.
        """
        del state, needed
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Game) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class StochasticGame(Game):
    """A game in which chance moves after every move of a player.

    A move leads to an afterstate, a state of the same type that only `resolve` continues. The reward of the move is in
    the afterstate's `rewards` and is kept by `resolve`. An afterstate is never terminated.

    Attributes:
      num_chance_outcomes: C.
    """

    num_chance_outcomes: int

    @abc.abstractmethod
    def move(self, state: Any, action: jax.Array) -> Any:
        """Returns the afterstate of a legal `action` (`[]` int32) in a state that is not terminated."""

    @abc.abstractmethod
    def chance_log_probs(self, afterstate: Any) -> jax.Array:
        """Returns `[C]` float32 log probabilities of the chance outcomes; -inf for impossible ones."""

    @abc.abstractmethod
    def resolve(self, afterstate: Any, outcome: jax.Array) -> Any:
        """Returns the state after the possible chance `outcome` (`[]` int32)."""

    def draw(self, afterstate: Any, key: jax.Array) -> jax.Array:
        """Samples an outcome. A game may override it to draw fewer random numbers than one per outcome."""
        return jax.random.categorical(key, self.chance_log_probs(afterstate))

    def step(self, state: Any, action: jax.Array, key: jax.Array) -> Any:
        afterstate = self.move(state, action)
        return absorb(state, self.resolve(afterstate, self.draw(afterstate, key)))
