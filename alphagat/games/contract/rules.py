"""The rules of the contract, each a check of recorded random games.

A check raises UserError, with the fix, if the game breaks the rule. It returns None, or a note on what it left out.
"""

import functools
import itertools
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.errors import UserError
from alphagat.games.base import Game, StochasticGame
from alphagat.games.contract.random_games import RandomGames, compile_features
from alphagat.games.states import first_state

MAX_DRAWINGS = 20
NUM_DRAWS = 1000


def check_shapes(game: Game) -> None:
    """`init`, `step` and `observe` return arrays of the declared shapes and types.

    Only such a game can be played by `random_games.play`, and so checked by the other rules.
    """
    key = jax.random.key(0)
    first = jax.eval_shape(game.init, key)
    after = jax.eval_shape(game.step, first, jax.ShapeDtypeStruct((), np.int32), key)
    _require(game, jax.tree.structure(first) == jax.tree.structure(after), "step must return the same class as init")
    for (path, old), (_, new) in zip(*map(jax.tree_util.tree_leaves_with_path, (first, after))):
        name = jax.tree_util.keystr(path)
        _require(game, not old.weak_type, f"init returns a weak type for {name}; set it, as in jnp.float32(0)")
        _expect(game, f"step for {name}", new, old.shape, old.dtype)
    _expect(game, "init for .current_player", first.current_player, (), np.int8)
    _expect(game, "init for .rewards", first.rewards, (game.num_players,), np.float32)
    _expect(game, "init for .terminated", first.terminated, (), np.bool_)
    legal = jax.eval_shape(lambda state: state.legal_action_mask, first)
    _expect(game, "legal_action_mask", legal, (game.num_actions,), np.bool_)
    nodes = game.topology.num_nodes
    _expect(game, "observe", jax.eval_shape(game.observe, first), (nodes, game.num_features), np.float32)


def check_batches(games: RandomGames) -> None:
    """`legal_action_mask` works on batches of states."""
    batch = jax.tree.map(lambda x: x[0], games.states)
    fix = "index from the end, as in self.terminated[..., None]"
    try:
        legal = np.asarray(batch.legal_action_mask)
    except (TypeError, ValueError, IndexError) as error:
        line = str(error).partition("\n")[0]
        raise UserError(
            f"board {games.game.name}: legal_action_mask fails on a batch of states ({line}); {fix}"
        ) from error
    same = legal.shape == games.legal[0].shape and (legal == games.legal[0]).all()
    _require(games.game, same, f"legal_action_mask of a batch of states differs from that of each state; {fix}")


def check_ends(games: RandomGames) -> None:
    """Games end within `max_plies`, and positions have legal actions until then."""
    game, most = games.game, games.game.max_plies
    _require(game, not games.terminated[0].any(), "init returns a terminated state")
    has_moves = games.legal.any(axis=-1)
    _require(game, (has_moves | games.terminated).all(), "a position without legal actions is not terminated")
    _require(game, not (has_moves & games.terminated).any(), "legal_action_mask must be all False once terminated")
    if most < len(games.terminated):
        _require(game, games.terminated[most].all(), f"a game goes on after max_plies={most} moves; raise max_plies")
    most_legal = games.legal.sum(axis=-1).max()
    _require(
        game,
        most_legal <= game.max_legal_actions <= game.num_actions,
        f"max_legal_actions={game.max_legal_actions} must be at least {most_legal}, the legal actions of a position, "
        f"and at most {game.num_actions}, the number of actions",
    )


def check_terminal_states(games: RandomGames) -> None:
    """`step` leaves terminated states as they are, with rewards of zero."""
    over = games.terminated[:-1]
    fix = "see base.absorb"
    _require(games.game, not games.rewards[1:][over].any(), f"step pays rewards in a terminated state; {fix}")
    for path, leaf in jax.tree_util.tree_leaves_with_path(games.states.replace(rewards=games.terminated)):
        same = (leaf[:-1][over] == leaf[1:][over]).all()
        _require(games.game, same, f"step changes {jax.tree_util.keystr(path)} of a terminated state; {fix}")


def check_rewards(games: RandomGames) -> None:
    """Returns lie in [-1, 1] or have a `value_support`, and those of two players add up to zero."""
    game = games.game
    known = (games.players >= 0) & (games.players < game.num_players) | games.terminated
    _require(game, known.all(), f"current_player must be from 0 to {game.num_players - 1}")
    if game.num_players == 2:
        opposite = (games.rewards.sum(axis=-1) == 0).all()
        _require(game, opposite, "the rewards of a move must add up to 0 over both players")
    if game.value_support is None:
        largest = abs(games.rewards.sum(axis=0, dtype=np.float64)).max()
        _require(
            game,
            largest <= 1 + 1e-5,
            f"the rewards of a game add up to {largest:g}; scale them to [-1, 1] or set value_support",
        )


def check_chance(games: RandomGames) -> str | None:
    """Chance outcomes follow their probabilities."""
    game = games.game
    if not isinstance(game, StochasticGame):
        return "there is no chance"
    running = ~games.terminated[:-1]
    ply = min(3, int(running[:, 0].sum()) - 1)
    state, action = games.state(ply), jnp.int32(games.actions[ply, 0])
    after = game.move(state, action)
    probabilities = np.exp(np.asarray(game.chance_log_probs(after), np.float64))
    _require(game, len(probabilities) == game.num_chance_outcomes, "chance_log_probs must have num_chance_outcomes")
    total = probabilities.sum()
    _require(game, abs(total - 1) < 1e-4, f"the probabilities of chance_log_probs add up to {total:g} instead of 1")
    possible = np.flatnonzero(probabilities).astype(np.int32)
    results = jax.jit(jax.vmap(game.resolve, in_axes=(None, 0)))(after, possible)
    _require(
        game, (np.asarray(results.rewards) == np.asarray(after.rewards)).all(), "resolve must keep the rewards of move"
    )
    reached = _flat_features(game, results)
    _require(game, len(np.unique(reached, axis=0)) == len(possible), "two chance outcomes lead to the same features")
    keys = jax.random.split(jax.random.key(1), NUM_DRAWS)
    drawn = _flat_features(game, jax.jit(jax.vmap(game.step, in_axes=(None, None, 0)))(state, action, keys))
    outcome_of = (drawn[:, None] == reached[None]).all(axis=-1)  # [draws, outcomes]
    known = outcome_of.any(axis=1).all()
    _require(game, known, "step reaches positions that no chance outcome reaches by move and resolve")
    difference = abs(outcome_of.mean(axis=0) - probabilities[possible]).max()
    _require(
        game,
        difference < 0.06,
        f"in {NUM_DRAWS} draws, the share of a chance outcome differs by {difference:.2f} from its probability",
    )
    return None


def check_features(games: RandomGames) -> None:
    """Features are finite and change with each move."""
    _require(games.game, np.isfinite(games.features).all(), "observe returns values that are not finite")
    for number in range(games.number):
        positions = games.features[: games.length(number) + 1, number]
        same = np.flatnonzero((positions[1:] == positions[:-1]).all(axis=(1, 2)))
        ply = int(same[0]) if len(same) else 0
        _require(games.game, not len(same), f"observe returns the same before and after move {ply + 1} of a game")


def check_topology(games: RandomGames) -> None:
    """The topology has an edge from each node to itself and one for each action, and distinct actions."""
    game, topology = games.game, games.game.topology
    vocabulary, itself = topology.vocabulary, topology.vocabulary.index("self")
    pairs = set(zip(topology.senders.tolist(), topology.receivers.tolist()))
    _require(game, len(pairs) == topology.num_edges, "the topology has two edges between the same nodes")
    on_diagonal = np.eye(topology.num_nodes, dtype=bool)
    right = ((topology.relation_matrix == itself) == on_diagonal).all()
    _require(game, right, "edges of nodes to themselves, and no others, must have the relation self")
    for name, numbers, names in (
        ("relations", topology.relations, vocabulary.relations),
        ("node_kinds", topology.node_kinds, vocabulary.node_kinds),
        ("action_kinds", topology.action_kinds, vocabulary.action_kinds),
    ):
        _require(game, len(set(names)) == len(names), f"the vocabulary names one of its {name} twice")
        inside = 0 <= numbers.min() <= numbers.max() < len(names)
        _require(game, inside, f"{name} of the topology must be from 0 to {len(names) - 1}, as in the vocabulary")
    actions = topology.action_senders, topology.action_receivers, topology.action_kinds
    places = list(zip(*(each.tolist() for each in actions)))
    on_edges = {(sender, receiver) for sender, receiver, _ in places} <= pairs
    _require(game, on_edges, "an action lies on a pair of nodes without an edge in the topology")
    _require(game, len(set(places)) == len(places), "two actions have the same nodes and kind")
    named = len(set(game.action_names)) == len(game.action_names) == game.num_actions
    _require(game, named, f"action_names must be {game.num_actions} different names, one per action")


def check_edges(games: RandomGames) -> None:
    """Strengths of edges are at least 0, on pairs that the topology has, and above 0 from each node to itself."""
    game, topology = games.game, games.game.topology
    edges = jax.jit(jax.vmap(jax.vmap(game.edges)))(jax.tree.map(lambda x: x[:, :4], games.states))
    fix = "use complete_topology for edges that differ between positions"
    _require(game, (edges is not None) == topology.edges_vary, f"edges and topology.edges_vary disagree; {fix}")
    if edges is None:
        return
    nodes = np.arange(topology.num_nodes)
    _expect(game, "edges", edges[0, 0], (len(nodes), len(nodes), len(topology.vocabulary.relations)), np.float32)
    edges = np.asarray(edges)
    _require(game, np.isfinite(edges).all() and (edges >= 0).all(), "strengths of edges must be finite and at least 0")
    _require(game, edges[:, :, nodes, nodes].any(axis=-1).all(), "a node has no edge to itself")
    inside = not edges[:, :, topology.relation_matrix < 0].any()
    _require(game, inside, "edges has a strength above 0 where the topology has no edge")
    _require(game, (edges[0, 0] != edges).any(), "edges is the same for all positions; put the edges into the topology")


def check_symmetries(games: RandomGames) -> None:
    """Symmetries are permutations that keep the graph and the nodes of each action; the first is the identity."""
    game, topology, symmetries = games.game, games.game.topology, games.game.symmetries
    for name, size in (("node_permutations", topology.num_nodes), ("action_permutations", game.num_actions)):
        table = getattr(symmetries, name)
        _expect(game, f"symmetries.{name}", table, (symmetries.num_symmetries, size), np.int32)
        _require(game, (np.sort(table, axis=1) == np.arange(size)).all(), f"a row of {name} is no permutation")
        _require(game, (table[0] == np.arange(size)).all(), f"the first row of {name} must be the identity")
    different = len(np.unique(symmetries.node_permutations, axis=0)) == symmetries.num_symmetries
    _require(game, different, "two rows of node_permutations are equal")
    edges = topology.relation_matrix >= 0
    for number, (nodes, actions) in enumerate(zip(symmetries.node_permutations, symmetries.action_permutations)):
        _require(game, (edges[nodes][:, nodes] == edges).all(), f"symmetry {number} does not keep the edges")
        _require(
            game, (topology.node_kinds[nodes] == topology.node_kinds).all(), f"symmetry {number} changes kinds of nodes"
        )
        moved = all(
            (nodes[each] == each[actions]).all() for each in (topology.action_senders, topology.action_receivers)
        )
        kept = (topology.action_kinds[actions] == topology.action_kinds).all()
        _require(game, moved and kept, f"symmetry {number} does not move actions with their nodes")
        # Only the names of directions may change, so each relation becomes one relation.
        after = topology.relation_matrix[nodes][:, nodes][topology.receivers, topology.senders]
        renamed = set(zip(topology.relations.tolist(), after.tolist()))
        one_to_one = len(renamed) == len({old for old, _ in renamed}) == len({new for _, new in renamed})
        _require(game, one_to_one, f"symmetry {number} mixes edges of different relations")


def check_symmetric_play(games: RandomGames) -> str | None:
    """Symmetric moves lead to symmetric positions with the same results.

    A symmetry may exchange the players; the other one then starts. Returns which symmetries it could not check.
    """
    game, unchecked = games.game, []
    if isinstance(game, StochasticGame) or _draws_its_start(game):
        return "not checked, since games begin or go on at random"
    starts = [np.asarray(jax.jit(game.observe)(_starting(game, player))) for player in range(game.num_players)]
    for number, nodes in enumerate(game.symmetries.node_permutations):
        player = next((each for each, start in enumerate(starts) if (starts[0][nodes] == start).all()), None)
        if player is None:
            unchecked.append(str(number))
        else:
            _check_symmetry(games, number, player)
    if unchecked:
        return f"symmetries {', '.join(unchecked)} not checked, since they change the first position"
    return None


def _check_symmetry(games: RandomGames, number: int, player: int) -> None:
    """Replays the games from the other side of a symmetry, where this player starts."""
    game = games.game
    nodes, actions = game.symmetries.node_permutations[number], game.symmetries.action_permutations[number]
    states, legal = _compile_replay(game)(np.int8(player), np.argsort(actions).astype(np.int32)[games.actions])
    lead = f"symmetry {number}: symmetric moves lead to"
    same = (np.asarray(compile_features(game)(states)) == games.features[1:][:, :, nodes]).all()
    _require(game, same, f"{lead} features that are not symmetric")
    same = (np.asarray(legal) == games.legal[1:][:, :, actions]).all()
    _require(game, same, f"{lead} legal actions that are not symmetric")
    rewards = np.roll(np.asarray(states.rewards), player, axis=-1)
    mover = games.players[:-1, :, None]
    same = np.take_along_axis(rewards, mover, axis=-1) == np.take_along_axis(games.rewards[1:], mover, axis=-1)
    ends = np.asarray(states.terminated) == games.terminated[1:]
    _require(game, same.all() and ends.all(), f"{lead} other results")


def check_drawings(games: RandomGames) -> None:
    """`render` and `render_svg` draw each position, differently after each move, and name the end."""
    game, last = games.game, games.length(0)
    texts = [game.render(games.state(ply)) for ply in range(min(last + 1, MAX_DRAWINGS))]
    _require(game, all(one != other for one, other in itertools.pairwise(texts)), "render shows the same after a move")
    for ply in (0, 1, last):
        state = games.state(ply)
        text = game.render(state)
        _require(game, text == text.rstrip(), "render returns a text that ends with a space or an empty line")
        says_so = any(word in text for word in ("won", "draw", "over"))
        fix = "write won, draw or over at the end of a game, and only there"
        _require(game, says_so == bool(state.terminated), f"render does not tell whether a game has ended; {fix}")
        root = ET.fromstring(game.render_svg(state))
        is_document = root.tag == "{http://www.w3.org/2000/svg}svg" and {"viewBox", "width", "height"} <= set(
            root.attrib
        )
        _require(game, is_document, "render_svg must return an SVG document with a size; see svg.document")


RULES: tuple[Callable[[RandomGames], str | None], ...] = (
    check_batches,
    check_topology,
    check_ends,
    check_terminal_states,
    check_rewards,
    check_chance,
    check_features,
    check_edges,
    check_symmetries,
    check_symmetric_play,
    check_drawings,
)


def _require(game: Game, holds: Any, problem: str) -> None:
    """Raises UserError with the name of the board unless the condition holds."""
    if not holds:
        raise UserError(f"board {game.name}: {problem}")


def _expect(game: Game, what: str, array: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Raises UserError unless an array has this shape and type."""
    found, wanted = (
        f"{np.dtype(kind).name}{list(size)}" for kind, size in ((array.dtype, array.shape), (dtype, shape))
    )
    _require(game, found == wanted, f"{what}: {found} instead of {wanted}")


def _flat_features(game: Game, states: Any) -> np.ndarray:
    """Returns `[B, V * F]`, the features of a batch of states."""
    features = np.asarray(jax.jit(jax.vmap(game.observe))(states))
    return features.reshape(len(features), -1)


def _draws_its_start(game: Game) -> bool:
    """Returns whether the first position depends on the key."""
    keys = jax.random.split(jax.random.key(0), 4)
    starts = np.asarray(jax.jit(jax.vmap(lambda key: game.observe(game.init(key))))(keys))
    return bool((starts != starts[0]).any())


def _starting(game: Game, player: int) -> Any:
    """Returns the first position with this player to move."""
    return first_state(game).replace(current_player=jnp.int8(player))


@functools.lru_cache(maxsize=64)
def _compile_replay(game: Game) -> Callable:
    """Returns a function of the first player and actions `[T, B]` to the states after each and their legal actions."""
    key = jax.random.key(0)

    @functools.partial(jax.vmap, in_axes=(None, 1), out_axes=1)
    def replay(player, actions):
        first = game.init(key).replace(current_player=player)
        states = jax.lax.scan(lambda state, action: (game.step(state, action, key),) * 2, first, actions)[1]
        return states, jax.vmap(lambda state: state.legal_action_mask)(states)

    return jax.jit(replay)
