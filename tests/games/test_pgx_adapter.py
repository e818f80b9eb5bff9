"""Games of Pgx behind our contract: the same games, with player 0 first, fewer bytes and actions at their cells."""

import functools
import importlib
import xml.etree.ElementTree as ET

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pytest

from alphagat.games import make_game, pgx_adapter
from alphagat.games.base import State
from alphagat.games.states import first_state
from tests.games import pgx_games
from tests.games.pgx_games import num_bytes, replay

NUM_GAMES = 32


@functools.cache
def compile_observe(name):
    """Returns a function of `[T, B]` states to their features of nodes."""
    return jax.jit(jax.vmap(jax.vmap(make_game(name).observe)))


@pytest.mark.parametrize("game", ["tic_tac_toe", "connect_four", "hex", "animal_shogi"])
def test_matches_pgx(game, record):
    """The record comes from Pgx through the adapter: this holds what the adapter adds, takes away and reorders."""
    games = record(f"pgx:{game}", NUM_GAMES)
    theirs = replay(pgx_games.make(game), games.actions)
    assert (games.legal == theirs.legal).all()
    assert (games.players == theirs.players).all()
    assert (games.rewards == theirs.rewards).all()
    assert (games.terminated == theirs.terminated).all()
    board = make_game(f"pgx:{game}")
    nodes = np.asarray(compile_observe(f"pgx:{game}")(games.states))
    cells = nodes[:, :, : board.board.rows * board.board.columns]
    assert (cells == theirs.observations.reshape(cells.shape)).all()
    assert not nodes[:, :, cells.shape[2] :].any()
    assert num_bytes(jax.tree.map(lambda x: x[-1], games.states)) < num_bytes(theirs.state)


def test_longest_games_are_those_of_pgx():
    """Games with a limit of moves are as long as it, and on these boards each move fills a cell."""
    limit = importlib.import_module("pgx.animal_shogi").MAX_TERMINATION_STEPS
    assert pgx_adapter.GAMES["animal_shogi"][1] == limit
    assert [pgx_adapter.GAMES[name][1] for name in ("tic_tac_toe", "connect_four", "hex")] == [9, 6 * 7, 11 * 11 + 1]


def test_state_keeps_only_fields_the_rules_need(record):
    state = record("pgx:hex", NUM_GAMES).states
    fields = {
        "observation",
        "current_player",
        "rewards",
        "terminated",
        "truncated",
        "legal_action_mask",
        "_player_order",
    }
    assert all(getattr(state.rules, field) is None for field in fields)
    assert list(State.__dataclass_fields__) == ["current_player", "rewards", "terminated"]


@pytest.mark.parametrize("game", sorted(pgx_adapter.GAMES))
def test_every_listed_game_has_a_graph(game):
    assert game in pgx.available_envs()
    board = make_game(f"pgx:{game}")
    rows, columns, num_actions = board.board
    topology = board.topology
    assert topology.num_actions == num_actions == len(set(board.action_names))
    places = np.stack([topology.action_senders, topology.action_receivers, topology.action_kinds])
    assert (places[0] == places[1]).all()
    assert len(np.unique(places, axis=1).T) == num_actions
    free = {"connect_four": 7, "othello": 1, "hex": 1, "go_9x9": 1, "go_19x19": 1}.get(game, 0)
    assert topology.num_nodes == rows * columns + free
    assert board.family == f"pgx:{game}"
    assert board.num_features > 0


@pytest.mark.parametrize(
    ("game", "own", "leaves"),
    [
        ("animal_shogi", 5, lambda kind: kind < 8),  # eight directions, then drops
        ("gardner_chess", 6, lambda kind: kind >= 0),
    ],
)
def test_actions_are_anchored_at_their_cells(game, own, leaves):
    """A piece leaves from a cell with an own piece, and goes to one without."""
    board = make_game(f"pgx:{game}")

    @jax.jit
    def play(key):
        def ply(state, key):
            legal = state.legal_action_mask
            action = jax.random.categorical(key, jnp.where(legal, 0.0, -1e9)).astype(jnp.int32)
            return board.step(state, action, key), (legal, board.observe(state))

        return jax.lax.scan(ply, board.init(key), jax.random.split(key, 60))[1]

    legal, nodes = (np.asarray(x) for x in play(jax.random.key(4)))
    mine = nodes[:, :, :own].any(axis=-1)[:, board.topology.action_senders]  # [T, A]
    expected = np.broadcast_to(leaves(board.topology.action_kinds), mine.shape)
    assert legal.any(axis=-1)[:20].all()
    assert (mine[legal] == expected[legal]).all()


def test_relations_describe_sender_from_receiver_view():
    topology = make_game("pgx:connect_four").topology
    relation = topology.vocabulary.index
    matrix = topology.relation_matrix
    assert matrix[0, 1] == relation("e1")
    assert matrix[41, 41 - 5 * 8] == relation("nw4+")
    assert matrix[0, 9] == -1
    assert (matrix[42:, :42] == relation("cell>action")).all()
    assert (matrix[:42, 42:] == relation("action>cell")).all()
    assert (matrix[42:, 42:] == np.where(np.eye(7), relation("self"), -1)).all()
    assert topology.vocabulary.node_kinds[1:] == tuple(f"action {column}" for column in range(7))


def test_drawings_match_pgx():
    game = make_game("pgx:tic_tac_toe")
    step, state = jax.jit(game.step), first_state(game)
    first, second = (name for name, _ in game.player_colours)
    for ply, move in enumerate(("a3", "b3", "a2", "b2", "a1")):
        assert game.render(state).endswith(f"ply {ply}: {(first, second)[ply % 2]} to move")
        state = step(state, np.int32(game.action_names.index(move)), jax.random.key(0))
    assert game.render(state).split("\n") == [" 3 1 0 .", " 2 1 0 .", " 1 1 . .", "   a b c", f"ply 5: {first} won"]
    root = ET.fromstring(game.render_svg(state))
    assert root.attrib["viewBox"] == "0 0 240 240"
    assert len(root.findall(".//{*}circle")) + len(root.findall(".//{*}line")) > 5
    again = step(state, np.int32(8), jax.random.key(0))
    assert again.rewards.tolist() == [0, 0]
    assert game.render(again).endswith("ply 5: game over")
