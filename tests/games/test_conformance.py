"""What every game must keep, on boards of every registered family."""

import functools
import itertools
import xml.etree.ElementTree as ET

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.games import EXAMPLES, GAMES, make_game
from alphagat.games.base import StochasticGame
from alphagat.games.chess import ChessGame
from alphagat.games.go import GoGame
from alphagat.games.states import first_state

BOARDS = (
    "tic_tac_toe",
    "connect_four",
    "gomoku:5",
    "mnk:4x3x3",
    "mnk:3x5x4:gravity",
    "hex:2:swap",
    "hex:3",
    "hex:4:swap",
    "breakthrough:5",
    "othello:4",
    "go:5",
    "chess",
    "gardner_chess",
    "pgx:tic_tac_toe",
    "pgx:connect_four",
    "2048:2",
    "2048:3",
    "tsp:4",
    "tsp:7",
)
NUM_GAMES = 32
every_board = pytest.mark.every_board  # with --board, of those boards instead


def shapes(tree):
    return jax.tree.map(lambda x: (x.shape, x.dtype, x.weak_type), tree)


@functools.cache
def jitted_observe(name):
    return jax.jit(jax.vmap(jax.vmap(make_game(name).observe)))


def test_every_family_is_tested():
    assert {name.split(":")[0] for name in BOARDS} == set(GAMES) == {name.split(":")[0] for name in EXAMPLES}


def test_equal_names_give_same_game():
    assert make_game("hex:3") is make_game("hex:3")
    assert make_game("hex:3") != make_game("hex:4")
    assert all(make_game(name).name == name for name in (*BOARDS, *EXAMPLES))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("chess960", "hex:5"),
        ("", "hex:5"),
        ("hex", "hex:SIZE"),
        ("hex:05", "hex:SIZE"),
        ("hex:1", "2 to 19"),
        ("hex:20", "2 to 19"),
        ("hex:5:pie", "hex:5"),
        ("go", "go:SIZE"),
        ("go:9x9", "go:SIZE"),
        ("go:4", "5 to 19"),
        ("go:20", "5 to 19"),
        ("go:9:7", "0.5 to 39.5"),
        ("go:9:-1.5", "0.5 to 39.5"),
        ("go:9:40.5", "0.5 to 39.5"),
        ("chess:6", "gardner_chess"),
        ("gardner_chess:5", "must be gardner_chess"),
        ("pgx", "pgx:NAME"),
        ("pgx:hex:5", "pgx:NAME"),
        ("pgx:backgammon", "animal_shogi"),
        ("pgx:2048", "animal_shogi"),
        ("breakthrough", "breakthrough:SIZE"),
        ("breakthrough:6x5", "breakthrough:SIZE"),
        ("breakthrough:4", "5 to 8"),
        ("breakthrough:9", "5 to 8"),
        ("othello", "othello:8"),
        ("othello:8x8", "othello:SIZE"),
        ("othello:2", "4 to 12"),
        ("othello:7", "odd"),
        ("othello:14", "4 to 12"),
        ("2048:04", "2048:SIZE"),
        ("2048:3x3", "2048:SIZE"),
        ("2048:4", "called 2048"),
        ("2048:1", "2 to 8"),
        ("2048:9", "2 to 8"),
        ("tsp", "tsp:CITIES"),
        ("tsp:05", "tsp:CITIES"),
        ("tsp:3", "4 to 100"),
        ("tsp:101", "4 to 100"),
        ("tic_tac_toe:4", "mnk"),
        ("connect_four:7", "mnk"),
        ("gomoku", "gomoku:9"),
        ("gomoku:4", "5 to 19"),
        ("gomoku:20", "3 to 19"),
        ("mnk:3x3", "ROWSxCOLUMNSxK"),
        ("mnk:2x5x3", "rows 2"),
        ("mnk:5x20x3", "columns 20"),
        ("mnk:5x5x6", "3 to 5"),
        ("mnk:5x5x2", "3 to 5"),
    ],
)
def test_invalid_name_is_rejected_in_one_line(name, says):
    with pytest.raises(UserError) as error:
        make_game(name)
    assert says in str(error.value)
    assert name in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        *(
            (functools.partial(GoGame, "go:9", 9, komi), "use 0.5 to 39.5 in steps of 1")
            for komi in (7, 0.25, -0.5, 40.5, float("nan"))
        ),
        (functools.partial(ChessGame, "chess", 6), "board chess: size 6 is not possible; use 5 or 8"),
    ],
)
def test_invalid_arguments_are_rejected_as_in_a_name(make, says):
    with pytest.raises(UserError, match=says):
        make()


@pytest.mark.parametrize("broken", ["hex:5\n", "no\nsuch", "pgx:a\rb", "go:9\u2028"])
def test_error_about_name_with_line_break_is_one_line(broken):
    with pytest.raises(UserError, match="line break") as error:
        make_game(broken)
    assert str(error.value).splitlines() == [str(error.value)]


@every_board
def test_shapes_and_dtypes_are_preserved(name):
    game = make_game(name)
    key = jax.random.key(0)
    first = jax.eval_shape(game.init, key)
    action = jax.ShapeDtypeStruct((), np.int32)
    after = jax.eval_shape(game.step, first, action, key)
    assert jax.tree.structure(first) == jax.tree.structure(after)
    assert shapes(first) == shapes(after)
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(first))
    assert (first.current_player.shape, first.current_player.dtype) == ((), np.int8)
    assert (first.rewards.shape, first.rewards.dtype) == ((game.num_players,), np.float32)
    assert (first.terminated.shape, first.terminated.dtype) == ((), bool)
    legal = jax.eval_shape(lambda state: state.legal_action_mask, first)
    assert (legal.shape, legal.dtype) == ((game.num_actions,), bool)
    nodes = jax.eval_shape(game.observe, first)
    assert (nodes.shape, nodes.dtype) == ((game.topology.num_nodes, game.num_features), np.float32)


@every_board
def test_random_games_end_and_terminal_states_absorb(name, record):
    game, games = make_game(name), record(name, NUM_GAMES)
    if game.max_plies < len(games.actions):
        assert games.terminated[game.max_plies].all()
    assert not games.terminated[0].any()
    assert (games.legal.any(axis=-1) == ~games.terminated).all()
    assert games.legal.sum(axis=-1).max() <= game.max_legal_actions <= game.num_actions
    over = games.terminated[:-1]
    assert (games.rewards[1:][over] == 0).all()
    for leaf in jax.tree.leaves(games.states.replace(rewards=games.terminated)):
        before, after = np.asarray(leaf)[:-1], np.asarray(leaf)[1:]
        assert (before[over] == after[over]).all()


@every_board
def test_rewards_and_turns(name, record):
    """Two players alternate and share out nothing until the end; one player moves always, and is never fined."""
    game, games = make_game(name), record(name, NUM_GAMES)
    running = ~games.terminated[:-1]
    assert (games.players[0] == 0).all()
    if game.num_players == 1:
        assert (games.players == 0).all()
        assert (games.rewards >= 0).all()
        return
    assert (games.players[1:][running] == 1 - games.players[:-1][running]).all()
    assert (games.rewards.sum(axis=-1) == 0).all()
    assert (games.rewards[1:][running & ~games.terminated[1:]] == 0).all()
    assert (abs(games.rewards) <= 1).all()


@every_board
def test_chance_follows_its_distribution(name, record):
    game, games = make_game(name), record(name, NUM_GAMES)
    if not isinstance(game, StochasticGame):
        return
    state, action = jax.tree.map(lambda x: jnp.asarray(x[3, 0]), (games.states, games.actions))
    after = game.move(state, action)
    probabilities = np.exp(np.asarray(game.chance_log_probs(after)))
    assert probabilities.shape == (game.num_chance_outcomes,)
    assert probabilities.sum() == pytest.approx(1)
    possible = np.flatnonzero(probabilities)
    results = jax.jit(jax.vmap(game.resolve, in_axes=(None, 0)))(after, possible)
    assert shapes(jax.tree.map(lambda x: x[0], results)) == shapes(state)
    reached = np.asarray(jax.vmap(game.observe)(results)).reshape(len(possible), -1)
    assert len(np.unique(reached, axis=0)) == len(possible)
    keys = jax.random.split(jax.random.key(1), 1000)
    drawn = jax.jit(jax.vmap(game.step, in_axes=(None, None, 0)))(state, action, keys)
    drawn = np.asarray(jax.vmap(game.observe)(drawn)).reshape(len(keys), -1)
    share = (drawn[:, None] == reached[None]).all(axis=-1).mean(axis=0)
    assert share.sum() == 1
    assert share == pytest.approx(probabilities[possible], abs=0.06)
    assert (np.asarray(results.rewards) == np.asarray(after.rewards)).all()


@every_board
def test_features_are_finite_and_distinguish_positions(name, record):
    games = record(name, NUM_GAMES)
    nodes = np.asarray(jitted_observe(name)(games.states))
    assert np.isfinite(nodes).all()
    assert (abs(nodes) <= 4).all()
    for game in range(NUM_GAMES):
        positions = nodes[: games.length(game) + 1, game].reshape(games.length(game) + 1, -1)
        assert (positions[1:] != positions[:-1]).any(axis=-1).all()


@every_board
def test_topology(name):
    game = make_game(name)
    topology = game.topology
    nodes = np.arange(topology.num_nodes)
    pairs = set(zip(topology.senders.tolist(), topology.receivers.tolist()))
    assert len(pairs) == topology.num_edges
    assert (topology.relation_matrix[nodes, nodes] == topology.vocabulary.index("self")).all()
    assert ((topology.relation_matrix == topology.vocabulary.index("self")).sum()) == len(nodes)
    assert 0 <= topology.relations.min() <= topology.relations.max() < len(topology.vocabulary.relations)
    assert 0 <= topology.node_kinds.min() <= topology.node_kinds.max() < len(topology.vocabulary.node_kinds)
    assert 0 <= topology.action_kinds.min() <= topology.action_kinds.max() < len(topology.vocabulary.action_kinds)
    assert len(set(topology.vocabulary.relations)) == len(topology.vocabulary.relations)
    columns = topology.action_senders, topology.action_receivers, topology.action_kinds
    places = list(zip(*(column.tolist() for column in columns)))
    assert {(sender, receiver) for sender, receiver, _ in places} <= pairs
    assert len(set(places)) == len(places) == game.num_actions == len(set(game.action_names))
    assert np.prod(topology.grid_shape) <= topology.num_nodes


@every_board
def test_edges_of_positions(name, record):
    """They are strengths between nodes that have an edge in the topology, and every node has one to itself."""
    game, games = make_game(name), record(name, NUM_GAMES)
    edges = jax.jit(jax.vmap(jax.vmap(game.edges)))(jax.tree.map(lambda x: x[:, :4], games.states))
    assert (edges is not None) == game.topology.edges_vary
    if edges is None:
        return
    num_nodes, num_relations = game.topology.num_nodes, len(game.topology.vocabulary.relations)
    assert (edges.shape[2:], edges.dtype) == ((num_nodes, num_nodes, num_relations), np.float32)
    edges = np.asarray(edges)
    assert np.isfinite(edges).all()
    assert (edges >= 0).all()
    assert edges[:, :, range(num_nodes), range(num_nodes)].any(axis=-1).all()
    assert not edges[:, :, game.topology.relation_matrix < 0].any()
    assert (edges[0, 0] != edges[:, 1:]).any()


@every_board
def test_symmetries_permute_nodes_edges_and_actions(name):
    game = make_game(name)
    topology, symmetries = game.topology, game.symmetries
    edges = topology.relation_matrix >= 0
    nodes = np.arange(topology.num_nodes)
    for table, size in ((symmetries.node_permutations, len(nodes)), (symmetries.action_permutations, game.num_actions)):
        assert (table.shape, table.dtype) == ((symmetries.num_symmetries, size), np.int32)
        assert (np.sort(table, axis=1) == np.arange(size)).all()
        assert (table[0] == np.arange(size)).all()
    assert len(np.unique(symmetries.node_permutations, axis=0)) == symmetries.num_symmetries
    for node, action in zip(symmetries.node_permutations, symmetries.action_permutations):
        assert (edges[node][:, node] == edges).all()
        assert (topology.node_kinds[node] == topology.node_kinds).all()
        assert (node[topology.action_senders] == topology.action_senders[action]).all()
        assert (node[topology.action_receivers] == topology.action_receivers[action]).all()
        assert (topology.action_kinds[action] == topology.action_kinds).all()
        # Edges of one relation stay together, so that only the names of directions change.
        renamed = set(zip(topology.relations.tolist(), topology.relation_matrix[node][:, node][edges_of(topology)]))
        assert len(renamed) == len({old for old, _ in renamed}) == len({new for _, new in renamed})


def edges_of(topology):
    return topology.receivers, topology.senders


def draws_its_start(game):
    """Returns whether the first position depends on the key."""
    keys = jax.random.split(jax.random.key(0), 4)
    starts = np.asarray(jax.jit(jax.vmap(lambda key: game.observe(game.init(key))))(keys))
    return (starts != starts[0]).any()


@every_board
def test_symmetric_play_gives_symmetric_positions(name, record):
    """A symmetry that moves the first position's features exchanges the players: the other one then starts."""
    game, games = make_game(name), record(name, NUM_GAMES)
    if isinstance(game, StochasticGame) or draws_its_start(game) or name == "gardner_chess":
        return  # symmetric positions, but not from symmetric draws, or not from the same first position
    key = jax.random.key(0)

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(None, 1), out_axes=1)
    def replay(player, actions):
        first = game.init(key).replace(current_player=player)
        _, states = jax.lax.scan(lambda state, action: (game.step(state, action, key),) * 2, first, actions)
        return states, states.legal_action_mask

    start = np.asarray(jax.jit(game.observe)(first_state(game)))
    nodes = np.asarray(jitted_observe(name)(games.states))[1:]
    mover = games.players[:-1, :, None]
    reward = np.take_along_axis(games.rewards[1:], mover, axis=-1)
    symmetries = game.symmetries
    for node, action in zip(symmetries.node_permutations, symmetries.action_permutations):
        exchanged = not (start[node] == start).all()
        states, legal = replay(np.int8(exchanged), np.argsort(action).astype(np.int32)[games.actions])
        assert (np.asarray(jitted_observe(name)(states)) == nodes[:, :, node]).all()
        assert (np.asarray(legal) == games.legal[1:][:, :, action]).all()
        assert (np.asarray(states.terminated) == games.terminated[1:]).all()
        rewards = np.asarray(states.rewards)[:, :, ::-1] if exchanged else np.asarray(states.rewards)
        assert (np.take_along_axis(rewards, mover, axis=-1) == reward).all()


@every_board
def test_drawings(name, record):
    game, games = make_game(name), record(name, NUM_GAMES)
    last = games.length(0)
    for ply in (0, 1, last):
        state = jax.tree.map(lambda x, ply=ply: x[ply, 0], games.states)
        text = game.render(state)
        assert text == text.rstrip()
        assert any(word in text for word in ("won", "draw", "over")) == bool(state.terminated)
        root = ET.fromstring(game.render_svg(state))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert {"viewBox", "width", "height"} <= set(root.attrib)
    plies = range(min(last + 1, 20))
    drawings = [game.render(jax.tree.map(lambda x, ply=ply: x[ply, 0], games.states)) for ply in plies]
    assert all(one != other for one, other in itertools.pairwise(drawings))
