"""What a game declares: rules of the contract that need no play.

A check raises UserError, with the fix, if the game breaks the rule.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from alphagat.games.base import Game
from alphagat.games.contract.require import expect, require
from alphagat.graphs.topology import Topology

ATTRIBUTES = ("name", "topology", "symmetries", "max_plies", "num_features", "action_names")


def check_attributes(game: Game) -> None:
    """The game has all attributes, of the declared types."""
    for name in ATTRIBUTES:
        require(game, hasattr(game, name), f"the game has no {name}; set it in __init__")
    require(game, game.num_players in (1, 2), f"num_players is {game.num_players}; it must be 1 or 2")
    for name in ("max_plies", "num_features"):
        value = getattr(game, name)
        is_count = isinstance(value, (int, np.integer)) and value > 0
        require(game, is_count, f"{name} is {value!r}; it must be a positive integer")
    names = game.action_names
    is_text = isinstance(names, tuple) and all(isinstance(each, str) and each.isprintable() and each for each in names)
    require(game, is_text, "action_names must be a tuple of strings, none of them empty or with line breaks")
    _check_vocabulary(game, game.topology)
    columns = [
        len(x) for x in (game.topology.action_senders, game.topology.action_receivers, game.topology.action_kinds)
    ]
    lengths = ", ".join(map(str, columns))
    same = len(set(columns)) == 1
    require(game, same, f"action_senders, action_receivers and action_kinds have {lengths} entries; they must be equal")
    support = game.value_support
    ascending = support is None or (
        isinstance(support, tuple) and len(support) > 1 and list(support) == sorted(support)
    )
    require(game, ascending, f"value_support is {support!r}; it must be None or a tuple of ascending numbers")
    history = all(0 <= column < game.num_features for column in game.history_features)
    require(game, history, f"history_features must be columns of observe, from 0 to {game.num_features - 1}")


def _check_vocabulary(game: Game, topology: Topology) -> None:
    vocabulary = topology.vocabulary
    for name in ("relations", "node_kinds", "action_kinds"):
        values = getattr(vocabulary, name)
        require(
            game, isinstance(values, tuple), f"{name} of the vocabulary is {values!r}; it must be a tuple of strings"
        )
    has_self = "self" in vocabulary.relations
    require(game, has_self, "the vocabulary has no relation self; add it, for the edge from each node to itself")


def check_topology(game: Game) -> None:
    """The topology has an edge from each node to itself and one for each action, and distinct actions."""
    topology = game.topology
    vocabulary, itself = topology.vocabulary, topology.vocabulary.index("self")
    pairs = set(zip(topology.senders.tolist(), topology.receivers.tolist()))
    require(game, len(pairs) == topology.num_edges, "the topology has two edges between the same nodes")
    on_diagonal = np.eye(topology.num_nodes, dtype=bool)
    right = ((topology.relation_matrix == itself) == on_diagonal).all()
    require(game, right, "edges of nodes to themselves, and no others, must have the relation self")
    for name, numbers, names in (
        ("relations", topology.relations, vocabulary.relations),
        ("node_kinds", topology.node_kinds, vocabulary.node_kinds),
        ("action_kinds", topology.action_kinds, vocabulary.action_kinds),
    ):
        require(game, len(set(names)) == len(names), f"the vocabulary names one of its {name} twice")
        inside = 0 <= numbers.min() <= numbers.max() < len(names)
        require(game, inside, f"{name} of the topology must be from 0 to {len(names) - 1}, as in the vocabulary")
    actions = topology.action_senders, topology.action_receivers, topology.action_kinds
    places = list(zip(*(each.tolist() for each in actions)))
    on_edges = {(sender, receiver) for sender, receiver, _ in places} <= pairs
    require(game, on_edges, "an action lies on a pair of nodes without an edge in the topology")
    require(game, len(set(places)) == len(places), "two actions have the same nodes and kind")
    named = len(set(game.action_names)) == len(game.action_names) == game.num_actions
    require(game, named, f"action_names must be {game.num_actions} different names, one per action")


def check_symmetries(game: Game) -> None:
    """Symmetries are permutations that keep the graph and the nodes of each action; the first is the identity."""
    topology, symmetries = game.topology, game.symmetries
    for name, size in (("node_permutations", topology.num_nodes), ("action_permutations", game.num_actions)):
        table = getattr(symmetries, name)
        expect(game, f"symmetries.{name}", table, (symmetries.num_symmetries, size), np.int32)
        require(game, (np.sort(table, axis=1) == np.arange(size)).all(), f"a row of {name} is no permutation")
        require(game, (table[0] == np.arange(size)).all(), f"the first row of {name} must be the identity")
    different = len(np.unique(symmetries.node_permutations, axis=0)) == symmetries.num_symmetries
    require(game, different, "two rows of node_permutations are equal")
    edges = topology.relation_matrix >= 0
    for number, (nodes, actions) in enumerate(zip(symmetries.node_permutations, symmetries.action_permutations)):
        require(game, (edges[nodes][:, nodes] == edges).all(), f"symmetry {number} does not keep the edges")
        require(
            game, (topology.node_kinds[nodes] == topology.node_kinds).all(), f"symmetry {number} changes kinds of nodes"
        )
        moved = all(
            (nodes[each] == each[actions]).all() for each in (topology.action_senders, topology.action_receivers)
        )
        kept = (topology.action_kinds[actions] == topology.action_kinds).all()
        require(game, moved and kept, f"symmetry {number} does not move actions with their nodes")
        # Only the names of directions may change, so each relation becomes one relation.
        after = topology.relation_matrix[nodes][:, nodes][topology.receivers, topology.senders]
        renamed = set(zip(topology.relations.tolist(), after.tolist()))
        one_to_one = len(renamed) == len({old for old, _ in renamed}) == len({new for _, new in renamed})
        require(game, one_to_one, f"symmetry {number} mixes edges of different relations")


def check_shapes(game: Game) -> None:
    """`init`, `step` and `observe` return arrays of the declared shapes and types.

    Only such a game can be played by `random_games.play`.
    """
    key = jax.random.key(0)
    _check_python_values(game)
    first = jax.eval_shape(game.init, key)
    after = jax.eval_shape(game.step, first, jax.ShapeDtypeStruct((), np.int32), key)
    require(game, jax.tree.structure(first) == jax.tree.structure(after), "step must return the same class as init")
    for (path, old), (_, new) in zip(*map(jax.tree_util.tree_leaves_with_path, (first, after))):
        name = jax.tree_util.keystr(path)
        require(
            game,
            not old.weak_type,
            f"init returns a number without a type for {name}; give it one, as in jnp.float32(0)",
        )
        expect(game, f"step for {name}", new, old.shape, old.dtype)
    expect(game, "init for .current_player", first.current_player, (), np.int8)
    expect(game, "init for .rewards", first.rewards, (game.num_players,), np.float32)
    expect(game, "init for .terminated", first.terminated, (), np.bool_)
    legal = jax.eval_shape(lambda state: state.legal_action_mask, first)
    expect(game, "legal_action_mask", legal, (game.num_actions,), np.bool_)
    nodes = game.topology.num_nodes
    expect(game, "observe", jax.eval_shape(game.observe, first), (nodes, game.num_features), np.float32)


def check_optional_parts(game: Game) -> None:
    """Functions that a game may define return arrays of the declared shapes and types."""
    first = jax.eval_shape(game.init, jax.random.key(0))
    nodes = game.topology.num_nodes
    paid = jax.eval_shape(game.truncation_rewards, first)
    expect(game, "truncation_rewards", paid, (game.num_players,), np.float32)
    owners = jax.eval_shape(game.ownership, first, jax.ShapeDtypeStruct((), np.bool_))
    if owners is not None:
        expect(game, "ownership", owners, (nodes,), np.int8)
    cells = int(np.prod(game.topology.grid_shape))
    require(game, cells <= nodes, f"grid_shape of the topology has {cells} cells, more than the {nodes} nodes")


def _check_python_values(game: Game) -> None:
    """Raises UserError if `init` leaves a field a Python value, which has no type outside of compiled code."""

    def find(key: jax.Array) -> Any:
        state = game.init(key)
        for path, leaf in jax.tree_util.tree_leaves_with_path(state):
            fix = "make it an array, such as jnp.bool_(False)"
            is_array = not isinstance(leaf, (bool, int, float))
            require(game, is_array, f"init returns the Python value {leaf} for {jax.tree_util.keystr(path)}; {fix}")
        return state

    jax.eval_shape(find, jax.random.key(0))


DECLARATIONS: tuple[Callable[[Game], None], ...] = (
    check_attributes,
    check_topology,
    check_symmetries,
    check_shapes,
    check_optional_parts,
)
