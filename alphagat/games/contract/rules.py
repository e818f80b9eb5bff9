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

from alphagat.errors import UserError, first_line
from alphagat.games.base import Game, StochasticGame
from alphagat.games.batches import compile_step
from alphagat.games.contract.random_games import RandomGames, compile_features
from alphagat.games.contract.require import expect, require
from alphagat.games.states import draws_its_start, first_state

MAX_DRAWINGS = 20
NUM_DRAWS = 1000
NUM_PLIES = 4  # of each game, where checking all would take long


def check_batches(games: RandomGames) -> None:
    """`legal_action_mask` works on batches of states."""
    batch = jax.tree.map(lambda x: x[0], games.states)
    fix = "index from the end, as in self.terminated[..., None]"
    try:
        legal = np.asarray(batch.legal_action_mask)
    except (TypeError, ValueError, IndexError) as error:
        raise UserError(
            f"board {games.game.name}: legal_action_mask fails on a batch of states ({first_line(error)}); {fix}"
        ) from error
    same = legal.shape == games.legal[0].shape and (legal == games.legal[0]).all()
    require(games.game, same, f"legal_action_mask of a batch of states differs from that of each state; {fix}")


def check_ends(games: RandomGames) -> None:
    """Games end within `max_plies`, and positions have legal actions until then."""
    game, most = games.game, games.game.max_plies
    require(game, not games.terminated[0].any(), "init returns a terminated state")
    has_moves = games.legal.any(axis=-1)
    require(game, (has_moves | games.terminated).all(), "a position without legal actions is not terminated")
    require(game, not (has_moves & games.terminated).any(), "legal_action_mask must be all False once terminated")
    if most < len(games.terminated):
        require(game, games.terminated[most].all(), f"a game goes on after max_plies={most} moves; raise max_plies")
    most_legal = games.legal.sum(axis=-1).max()
    require(
        game,
        most_legal <= game.max_legal_actions <= game.num_actions,
        f"max_legal_actions={game.max_legal_actions} must be at least {most_legal}, the legal actions of a position, "
        f"and at most {game.num_actions}, the number of actions",
    )


def check_terminal_states(games: RandomGames) -> None:
    """`step` leaves terminated states as they are, with rewards of zero."""
    over = games.terminated[:-1]
    fix = "see base.absorb"
    require(games.game, not games.rewards[1:][over].any(), f"step pays rewards in a terminated state; {fix}")
    for path, leaf in jax.tree_util.tree_leaves_with_path(games.states.replace(rewards=games.terminated)):
        same = (leaf[:-1][over] == leaf[1:][over]).all()
        require(games.game, same, f"step changes {jax.tree_util.keystr(path)} of a terminated state; {fix}")


def check_rewards(games: RandomGames) -> None:
    """Returns lie in [-1, 1] or have a `value_support`, and those of two players add up to zero."""
    game = games.game
    known = (games.players >= 0) & (games.players < game.num_players) | games.terminated
    require(game, known.all(), f"current_player must be from 0 to {game.num_players - 1}")
    if game.num_players == 2:
        opposite = (games.rewards.sum(axis=-1) == 0).all()
        require(game, opposite, "the rewards of a move must add up to 0 over both players")
    totals = games.rewards.sum(axis=0, dtype=np.float64)
    if game.value_support is None:
        largest = abs(totals).max()
        require(
            game,
            largest <= 1 + 1e-5,
            f"the rewards of a game add up to {largest:g}; scale them to [-1, 1] or set value_support",
        )
    else:
        low, high = game.value_support[0], game.value_support[-1]
        inside = low <= totals.min() <= totals.max() <= high
        require(game, inside, f"rewards add up to {totals.min():g} to {totals.max():g}, beyond the value_support")


def check_keys(games: RandomGames) -> str | None:
    """Only the key decides what is random: `init` draws from it, and `step` of a game without chance ignores it."""
    game = games.game
    keys, others = (jax.random.split(jax.random.key(seed), games.number) for seed in range(2))
    once, again = (jax.jit(lambda keys: jax.vmap(game.init)(keys))(keys) for _ in range(2))  # traced anew
    fix = "draw with jax.random from the key"
    require(game, _equal(once, again), f"init returns different states for one key; {fix}")
    if isinstance(game, StochasticGame):
        return "there is chance"
    step = compile_step(game)
    for ply in range(min(len(games.actions), NUM_PLIES)):
        states = jax.tree.map(lambda x, ply=ply: x[ply], games.states)
        one, other = (step(states, games.actions[ply], each) for each in (keys, others))
        fix = "subclass base.StochasticGame for chance"
        require(game, _equal(one, other), f"step returns different states for different keys; {fix}")
    return None


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
    require(game, len(probabilities) == game.num_chance_outcomes, "chance_log_probs must have num_chance_outcomes")
    total = probabilities.sum()
    require(game, abs(total - 1) < 1e-4, f"the probabilities of chance_log_probs add up to {total:g} instead of 1")
    possible = np.flatnonzero(probabilities).astype(np.int32)
    results = jax.jit(jax.vmap(game.resolve, in_axes=(None, 0)))(after, possible)
    require(
        game, (np.asarray(results.rewards) == np.asarray(after.rewards)).all(), "resolve must keep the rewards of move"
    )
    reached = _flat_features(game, results)
    require(game, len(np.unique(reached, axis=0)) == len(possible), "two chance outcomes lead to the same features")
    keys = jax.random.split(jax.random.key(1), NUM_DRAWS)
    drawn = _flat_features(game, jax.jit(jax.vmap(game.step, in_axes=(None, None, 0)))(state, action, keys))
    outcome_of = (drawn[:, None] == reached[None]).all(axis=-1)  # [draws, outcomes]
    known = outcome_of.any(axis=1).all()
    require(game, known, "step reaches positions that no chance outcome reaches by move and resolve")
    difference = abs(outcome_of.mean(axis=0) - probabilities[possible]).max()
    require(
        game,
        difference < 0.06,
        f"in {NUM_DRAWS} draws, the share of a chance outcome differs by {difference:.2f} from its probability",
    )
    return None


def check_features(games: RandomGames) -> None:
    """Features are finite and change with each move."""
    require(games.game, np.isfinite(games.features).all(), "observe returns values that are not finite")
    for number in range(games.number):
        positions = games.features[: games.length(number) + 1, number]
        same = np.flatnonzero((positions[1:] == positions[:-1]).all(axis=(1, 2)))
        ply = int(same[0]) if len(same) else 0
        require(games.game, not len(same), f"observe returns the same before and after move {ply + 1} of a game")


def check_edges(games: RandomGames) -> None:
    """Strengths of edges are at least 0, on pairs that the topology has, and above 0 from each node to itself."""
    game, topology = games.game, games.game.topology
    edges = jax.jit(jax.vmap(jax.vmap(game.edges)))(jax.tree.map(lambda x: x[:, :4], games.states))
    missing = edges is None and topology.edges_vary
    require(game, not missing, "the topology says that edges vary, but edges(state) returns None; define it")
    fix = "use complete_topology"
    require(
        game, edges is None or topology.edges_vary, f"edges(state) returns an array, but the topology is fixed; {fix}"
    )
    if edges is None:
        return
    nodes = np.arange(topology.num_nodes)
    expect(game, "edges", edges[0, 0], (len(nodes), len(nodes), len(topology.vocabulary.relations)), np.float32)
    edges = np.asarray(edges)
    require(game, np.isfinite(edges).all() and (edges >= 0).all(), "strengths of edges must be finite and at least 0")
    require(game, edges[:, :, nodes, nodes].any(axis=-1).all(), "a node has no edge to itself")
    inside = not edges[:, :, topology.relation_matrix < 0].any()
    require(game, inside, "edges has a strength above 0 where the topology has no edge")
    require(game, (edges[0, 0] != edges).any(), "edges is the same for all positions; put the edges into the topology")


def check_winning_actions(games: RandomGames) -> str | None:
    """`winning_actions` win at once."""
    game = games.game
    wins = jax.jit(jax.vmap(jax.vmap(game.winning_actions)))(jax.tree.map(lambda x: x[:-1], games.states))
    if wins is None:
        return "it names none"
    expect(game, "winning_actions", wins[0, 0], (game.num_actions,), np.bool_)
    wins = np.asarray(wins) & games.legal[:-1]
    plies, rows = np.nonzero(wins.any(axis=-1))
    if not len(plies):
        return "none occurred"
    states = jax.tree.map(lambda x: x[plies, rows], games.states)
    actions = wins[plies, rows].argmax(axis=-1).astype(np.int32)
    after = compile_step(game)(states, actions, jax.random.split(jax.random.key(0), len(plies)))
    paid = np.take_along_axis(np.asarray(after.rewards), games.players[plies, rows][:, None].astype(int), axis=-1)
    won = np.asarray(after.terminated) & (paid[:, 0] > 0)
    require(game, won.all(), "winning_actions names a legal move that does not win at once")
    return None


def check_symmetric_play(games: RandomGames) -> str | None:
    """Symmetric moves lead to symmetric positions with the same results.

    A symmetry may exchange the players; the other one then starts. Returns which symmetries it could not check.
    """
    game, unchecked = games.game, []
    if isinstance(game, StochasticGame) or draws_its_start(game):
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
    require(game, same, f"{lead} features that are not symmetric")
    same = (np.asarray(legal) == games.legal[1:][:, :, actions]).all()
    require(game, same, f"{lead} legal actions that are not symmetric")
    rewards = np.roll(np.asarray(states.rewards), player, axis=-1)
    mover = games.players[:-1, :, None]
    same = np.take_along_axis(rewards, mover, axis=-1) == np.take_along_axis(games.rewards[1:], mover, axis=-1)
    ends = np.asarray(states.terminated) == games.terminated[1:]
    require(game, same.all() and ends.all(), f"{lead} other results")


def check_drawings(games: RandomGames) -> None:
    """`render` and `render_svg` draw each position, differently after each move, and name the end."""
    game, last = games.game, games.length(0)
    texts = [game.render(games.state(ply)) for ply in range(min(last + 1, MAX_DRAWINGS))]
    require(game, all(one != other for one, other in itertools.pairwise(texts)), "render shows the same after a move")
    for ply in (0, 1, last):
        state = games.state(ply)
        text = game.render(state)
        require(game, text == text.rstrip(), "render returns a text that ends with a space or an empty line")
        says_so = any(word in text for word in ("won", "draw", "over"))
        fix = "write won, draw or over at the end of a game, and only there"
        require(game, says_so == bool(state.terminated), f"render does not tell whether a game has ended; {fix}")
        root = _parse(game, game.render_svg(state))
        is_document = root.tag == "{http://www.w3.org/2000/svg}svg" and {"viewBox", "width", "height"} <= set(
            root.attrib
        )
        require(game, is_document, "render_svg must return an SVG document with a size; see svg.document")


def _parse(game: Game, text: str) -> ET.Element:
    """Returns the root of a drawing. Raises UserError if it is not XML."""
    try:
        return ET.fromstring(text)
    except (ET.ParseError, TypeError) as error:
        raise UserError(
            f"board {game.name}: render_svg must return an SVG document ({error}); see svg.document"
        ) from error


RULES: tuple[Callable[[RandomGames], str | None], ...] = (
    check_batches,
    check_ends,
    check_terminal_states,
    check_rewards,
    check_keys,
    check_chance,
    check_features,
    check_edges,
    check_winning_actions,
    check_symmetric_play,
    check_drawings,
)


def _equal(one: Any, other: Any) -> bool:
    """Returns whether two trees of arrays are equal."""
    return all((np.asarray(a) == np.asarray(b)).all() for a, b in zip(*map(jax.tree.leaves, (one, other))))


def _flat_features(game: Game, states: Any) -> np.ndarray:
    """Returns `[B, V * F]`, the features of a batch of states."""
    features = np.asarray(jax.jit(jax.vmap(game.observe))(states))
    return features.reshape(len(features), -1)


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
