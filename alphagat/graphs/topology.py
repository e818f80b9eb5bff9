"""The static graph of a board."""

import dataclasses
import functools

import numpy as np


@dataclasses.dataclass(frozen=True)
class RelationVocabulary:
    """Names the relations, node kinds and action kinds of one board family.

    Boards of a family share a vocabulary and therefore weights: the network has one learned bias per relation, one
    embedding per node kind and one read-out per action kind at any board size. `version` changes whenever a name
    changes its meaning, because weights trained with the old meaning no longer fit.
    """

    family: str
    version: int
    relations: tuple[str, ...]
    node_kinds: tuple[str, ...]
    action_kinds: tuple[str, ...] = ("move",)

    def index(self, relation: str) -> int:
        return self.relations.index(relation)


@dataclasses.dataclass(frozen=True, eq=False)
class Topology:
    """The typed, directed graph of one board, as numpy arrays that become constants of compiled programs.

    A receiver attends to its senders. There is at most one edge from a sender to a receiver, and every node has a
    self-loop. An action is located at the pair (action_sender, action_receiver); both are equal for an action at one
    node. Actions at the same pair, such as promotions, differ in kind.

    In a game whose edges vary, those of a position come from `Game.edges`, and the edges here are those that can occur;
    their relations have no meaning.

    Attributes:
      vocabulary: names of relations and kinds.
      senders: `[E]` int32.
      receivers: `[E]` int32.
      relations: `[E]` int32, index into `vocabulary.relations`.
      node_kinds: `[V]` int32, index into `vocabulary.node_kinds`.
      action_senders: `[A]` int32.
      action_receivers: `[A]` int32.
      action_kinds: `[A]` int32, index into `vocabulary.action_kinds`.
      grid_shape: rows and columns of the cells, which are the first `rows * columns` nodes in row-major order.
      edges_vary: the edges differ between positions.
    """

    vocabulary: RelationVocabulary
    senders: np.ndarray
    receivers: np.ndarray
    relations: np.ndarray
    node_kinds: np.ndarray
    action_senders: np.ndarray
    action_receivers: np.ndarray
    action_kinds: np.ndarray
    grid_shape: tuple[int, int]
    edges_vary: bool = False

    @property
    def num_nodes(self) -> int:
        return len(self.node_kinds)

    @property
    def num_edges(self) -> int:
        return len(self.senders)

    @property
    def num_actions(self) -> int:
        return len(self.action_senders)

    @functools.cached_property
    def relation_matrix(self) -> np.ndarray:
        """Returns `[V, V]` int32 by (receiver, sender): the relation, or -1 without an edge."""
        matrix = np.full((self.num_nodes, self.num_nodes), -1, np.int32)
        matrix[self.receivers, self.senders] = self.relations
        return matrix


def topology_from_matrix(
    vocabulary: RelationVocabulary,
    relation_matrix: np.ndarray,
    node_kinds: np.ndarray,
    actions: tuple[np.ndarray, np.ndarray],
    grid_shape: tuple[int, int],
    action_kinds: np.ndarray | None = None,
) -> Topology:
    """Builds a topology from its `[V, V]` (receiver, sender) relations, -1 for none.

    `actions` are the `[A]` senders and the `[A]` receivers. Without `action_kinds` all actions are of kind 0.
    """
    receivers, senders = np.nonzero(relation_matrix >= 0)
    action_senders, action_receivers = (np.asarray(nodes, np.int32) for nodes in actions)
    kinds = np.zeros_like(action_senders) if action_kinds is None else np.asarray(action_kinds, np.int32)
    return Topology(
        vocabulary=vocabulary,
        senders=senders.astype(np.int32),
        receivers=receivers.astype(np.int32),
        relations=relation_matrix[receivers, senders].astype(np.int32),
        node_kinds=np.asarray(node_kinds, np.int32),
        action_senders=action_senders,
        action_receivers=action_receivers,
        action_kinds=kinds,
        grid_shape=grid_shape,
    )


def complete_topology(
    vocabulary: RelationVocabulary,
    num_nodes: int,
    actions: tuple[np.ndarray, np.ndarray] | None = None,
    action_kinds: np.ndarray | None = None,
) -> Topology:
    """Builds the topology of a game in which any edge can occur.

    All nodes are of kind 0. Edges of nodes to themselves have relation 0, the others relation 1. `actions` and
    `action_kinds` are as in `topology_from_matrix`; without `actions`, one action chooses each node.
    """
    nodes = np.arange(num_nodes)
    between = 1 - np.eye(num_nodes, dtype=np.int32)
    actions = (nodes, nodes) if actions is None else actions
    topology = topology_from_matrix(vocabulary, between, 0 * nodes, actions, (1, num_nodes), action_kinds)
    return dataclasses.replace(topology, edges_vary=True)
