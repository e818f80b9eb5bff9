"""2048 against OpenSpiel's, move by move, a slow reference, and the bounds that its docstring derives."""

import functools
import math
import xml.etree.ElementTree as ET

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest

from alphagat.games import make_game
from alphagat.games.drawings.numbers import EMPTY
from alphagat.games.states import first_state
from alphagat.games.twenty_forty_eight import DIRECTIONS, VOCABULARY, power_of_two

THEIR_ACTIONS = (3, 0, 1, 2)  # OpenSpiel's numbers of left, up, right, down


def slow_line(line):
    """Slides one line of exponents to its start; returns it and what it pays."""
    tiles, slid, score = [tile for tile in line if tile], [], 0
    while tiles:
        tile = tiles.pop(0)
        if tiles and tiles[0] == tile:
            tile = tiles.pop(0) + 1
            score += 2**tile
        slid.append(tile)
    return slid + [0] * (len(line) - len(slid)), score


def slow_move(board, action):
    """Returns the board, a tuple of exponents row by row, after a move, and its score; shares no code with ours."""
    size, board, total = math.isqrt(len(board)), list(board), 0
    for index in range(size):
        row, column = range(index * size, (index + 1) * size), range(index, size * size, size)
        places = {"left": row, "up": column, "right": row[::-1], "down": column[::-1]}[DIRECTIONS[action]]
        slid, score = slow_line([board[place] for place in places])
        for place, tile in zip(places, slid):
            board[place] = tile
        total += score
    return tuple(board), total


def slow_legal(board):
    return [slow_move(board, action)[0] != tuple(board) for action in range(4)]


@functools.cache
def jitted(name):
    """Returns compiled functions of `[B]` boards: (boards, actions) -> (legal, boards, rewards), and
    (boards, outcomes) -> (boards, terminated).
    """
    game = make_game(name)
    first = first_state(game)

    @jax.jit
    @jax.vmap
    def move(board, action):
        state = first.replace(board=board)
        after = game.move(state, action)
        return state.legal_action_mask, after.board, after.rewards[0]

    @jax.jit
    @jax.vmap
    def resolve(board, outcome):
        after = game.resolve(first.replace(board=board), outcome)
        return after.board, after.terminated

    return move, resolve


def state_of(name, rows, terminated=False):
    """Returns a state from its tiles, row by row; 0 for empty."""
    exponents = [tile.bit_length() - 1 if tile else 0 for tile in np.ravel(rows).tolist()]
    first = first_state(make_game(name))
    return first.replace(board=jnp.array(exponents, jnp.int8), terminated=jnp.bool_(terminated))


def test_matches_open_spiel(record):
    """Legal is what changes OpenSpiel's board: its list of legal actions leaves out merges with tiles that have just
    merged.
    """
    num_games = 50
    games, spiel = record("2048", num_games), pyspiel.load_game("2048")
    boards = np.asarray(games.states.board)
    move, _ = jitted("2048")
    flat = boards[:-1].reshape(-1, 16), games.actions.reshape(-1)
    afterstates = np.asarray(move(*flat)[1]).reshape(boards[:-1].shape)

    def tiles(state):
        return [int(tile).bit_length() - 1 if tile != "0" else 0 for tile in str(state).split()]

    for game in range(num_games):
        state = spiel.new_initial_state()
        for cell in np.flatnonzero(boards[0, game]):
            state.apply_action(2 * int(cell) + int(boards[0, game, cell]) - 1)
        for ply in range(games.length(game)):
            assert not state.is_terminal()
            assert tiles(state) == boards[ply, game].tolist()
            children = [state.child(action) for action in THEIR_ACTIONS]
            assert [child.is_chance_node() for child in children] == games.legal[ply, game].tolist()
            assert set(state.legal_actions()) <= {THEIR_ACTIONS[i] for i in np.flatnonzero(games.legal[ply, game])}
            state = children[games.actions[ply, game]]
            assert state.rewards() == games.rewards[ply + 1, game].tolist()
            assert tiles(state) == afterstates[ply, game].tolist()
            (cell,) = np.flatnonzero(boards[ply + 1, game] != afterstates[ply, game])
            outcome = 2 * int(cell) + int(boards[ply + 1, game, cell]) - 1
            assert outcome in state.legal_actions()
            state.apply_action(outcome)
        assert state.is_terminal() == games.terminated[games.length(game), game]
    assert games.terminated[-1].sum() > num_games / 2


def boards_of(size, num_boards, key=0):
    """Draws boards with an empty cell: crowded and sparse ones, and full ones without pairs, or with hardly any."""
    random = np.random.default_rng(key)
    crowded = random.integers(0, 4, (num_boards, size * size))
    sparse = np.where(random.random(crowded.shape) < 0.5, 0, random.integers(1, 6, crowded.shape))
    row, column = np.divmod(np.arange(size * size), size)
    stuck = np.broadcast_to(3 + (row + column) % 2, crowded.shape).copy()
    stuck[::2][np.arange(len(stuck[::2])), random.integers(0, size * size, len(stuck[::2]))] = 4
    boards = np.concatenate([crowded, sparse, stuck]).astype(np.int8)
    boards[np.arange(len(boards)), random.integers(0, size * size, len(boards))] = 0
    return boards


@pytest.mark.parametrize("name", ["2048:2", "2048:3", "2048", "2048:5", "2048:8"])
def test_moves_match_slow_reference(name):
    size, random = make_game(name).size, np.random.default_rng(1)
    boards = boards_of(size, 100)
    move, resolve = jitted(name)
    for action in range(4):
        legal, after, rewards = (np.asarray(x) for x in move(boards, np.full(len(boards), action, np.int32)))
        expected = [slow_move(board, action) for board in boards.tolist()]
        assert after.tolist() == [list(board) for board, _ in expected]
        assert rewards.tolist() == [score for _, score in expected]
        assert legal[:, action].tolist() == (after != boards).any(axis=1).tolist()
    tiles = random.integers(0, 2, len(boards))
    cells = np.array([random.choice(np.flatnonzero(board == 0)) for board in boards])
    after, terminated = (np.asarray(x) for x in resolve(boards, (2 * cells + tiles).astype(np.int32)))
    boards[np.arange(len(boards)), cells] = 1 + tiles
    assert (after == boards).all()
    assert terminated.tolist() == [not any(slow_legal(board)) for board in boards.tolist()]
    assert 0 < terminated.sum() < len(boards)


def test_tiles_merge_once_starting_at_the_wall():
    move, _ = jitted("2048")
    lines = [[2, 2, 2, 0], [2, 2, 2, 2], [4, 2, 2, 0], [2, 0, 0, 2]]
    board = np.asarray(state_of("2048", lines).board)
    _, after, rewards = move(np.stack([board] * 2), np.array([0, 2], np.int32))
    left, right = (np.where(np.asarray(x) > 0, 2 ** np.asarray(x, int), 0).reshape(4, 4).tolist() for x in after)
    assert left == [[4, 2, 0, 0], [4, 4, 0, 0], [4, 4, 0, 0], [4, 0, 0, 0]]
    assert right == [[0, 0, 2, 4], [0, 0, 4, 4], [0, 0, 4, 4], [0, 0, 0, 4]]
    assert rewards.tolist() == [20, 20]


def test_chance_fills_empty_cells_uniformly_with_ninety_percent_twos():
    game = make_game("2048:3")
    state = state_of("2048:3", [[2, 0, 4], [0, 8, 0], [16, 2, 32]])
    probabilities = np.exp(game.chance_log_probs(state)).reshape(9, 2)
    expected = np.zeros((9, 2))
    expected[[1, 3, 5]] = [0.3, 1 / 30]
    assert probabilities == pytest.approx(expected, rel=1e-5)
    keys = jax.random.split(jax.random.key(3), 20000)
    boards = jax.jit(jax.vmap(lambda key: game.step(state, jnp.int32(0), key).board))(keys)
    after, _ = slow_move(np.asarray(state.board).tolist(), 0)
    empty = np.flatnonzero(np.array(after) == 0)  # two in this row, one in that
    assert len(empty) == 3
    for cell in empty:
        for exponent, probability in ((1, 0.9), (2, 0.1)):
            expected = probability / len(empty)
            share = np.mean(np.asarray(boards[:, cell]) == exponent)
            assert share == pytest.approx(expected, abs=4 * math.sqrt(expected / len(keys)))


def test_game_starts_with_two_tiles():
    keys = jax.random.split(jax.random.key(4), 5000)
    first = jax.jit(jax.vmap(make_game("2048:2").init))(keys)
    boards = np.asarray(first.board)
    assert ((boards > 0).sum(axis=1) == 2).all()
    assert not first.terminated.any()
    assert (first.rewards == 0).all()
    assert np.mean(boards[boards > 0] == 1) == pytest.approx(0.9, abs=0.02)
    assert (boards > 0).mean(axis=0) == pytest.approx(np.full(4, 0.5), abs=0.03)


def test_last_move_is_rewarded():
    game = make_game("2048:2")
    state = state_of("2048:2", [[2, 2], [16, 32]])
    step = jax.jit(game.step)
    over = next(after for key in range(9) if (after := step(state, 0, jax.random.key(key))).terminated)
    assert over.rewards.tolist() == [4]
    assert not over.legal_action_mask.any()
    again = step(over, 1, jax.random.key(0))
    assert again.rewards.tolist() == [0]
    assert again.board.tolist() == over.board.tolist()


def test_game_length_respects_bound():
    """Walks through all games on 2 x 2, where the bound of the sum is reached, and that of the moves nearly."""
    largest_sum = 0

    @functools.cache
    def longest(board):
        nonlocal largest_sum
        largest_sum = max(largest_sum, sum(2**tile for tile in board if tile))
        moved = {slow_move(board, action)[0] for action in range(4)} - {board}
        return max((1 + longest(after) for one in moved for after in grown(one)), default=0)

    def grown(board):
        return [(*board[:cell], tile, *board[cell + 1 :]) for cell in range(4) if not board[cell] for tile in (1, 2)]

    plies = max(longest(board) for one in grown((0,) * 4) for board in grown(one))
    assert largest_sum == 2**6 - 4
    assert plies == 24
    assert make_game("2048:2").max_plies == 28
    assert [make_game(name).max_plies for name in ("2048:3", "2048", "2048:8")] == [1020, 131068, 2**31 - 1]


def test_value_transform_spaces_returns_evenly():
    support = make_game("2048").value_support
    assert support is make_game("2048:3").value_support
    assert (len(support), support[0], support[-1]) == (256, 0, 2**20)
    atoms = np.array(support)
    assert np.diff(np.sqrt(atoms + 1) - 1 + 0.001 * atoms) == pytest.approx((1023 + 2**20 / 1000) / 255, rel=1e-4)


def test_powers_of_two_are_exact():
    exponents = np.arange(66, dtype=np.int8)
    assert np.asarray(power_of_two(exponents)).tolist() == [2.0**exponent for exponent in range(66)]


def test_symmetries_hold_for_moves_chance_and_features():
    game = make_game("2048:3")
    boards = boards_of(3, 20)
    move, _ = jitted("2048:3")
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(boards), *x.shape)), first_state(game))
    chance = jax.jit(jax.vmap(game.chance_log_probs))
    observe = jax.jit(jax.vmap(game.observe))
    for node, action in zip(game.symmetries.node_permutations, game.symmetries.action_permutations):
        cells = node[:9]
        for number in range(4):
            legal, after, rewards = move(boards[:, cells], np.full(len(boards), number, np.int32))
            expected = move(boards, np.full(len(boards), action[number], np.int32))
            assert (legal == expected[0][:, action]).all()
            assert (after == expected[1][:, cells]).all()
            assert (rewards == expected[2]).all()
        one, other = states.replace(board=jnp.asarray(boards)), states.replace(board=jnp.asarray(boards[:, cells]))
        assert (observe(other) == observe(one)[:, node]).all()
        assert (chance(other) == chance(one).reshape(-1, 9, 2)[:, cells].reshape(-1, 18)).all()


def test_features_show_tiles_and_legal_directions():
    game = make_game("2048:3")
    state = state_of("2048:3", [[2, 4, 8], [0, 0, 2**17], [0, 0, 2**18]])
    nodes = np.asarray(game.observe(state))
    assert nodes[:9, :18].argmax(axis=1).tolist() == [0 + 1, 2, 3, 0, 0, 17, 0, 0, 17]
    assert (nodes[:9, :18].sum(axis=1) == 1).all()
    assert nodes[:9, 18] == pytest.approx(np.array([1, 2, 3, 0, 0, 17, 0, 0, 18]) / 17)
    assert not nodes[:9, 19].any()
    assert nodes[9:, 19].tolist() == [1, 0, 0, 1]  # left and down
    assert not nodes[9:, :19].any()
    full = state.replace(board=jnp.full(9, 65, jnp.int8))
    assert np.abs(game.observe(full)).max() <= 4


def test_relations_describe_sender_from_receiver_view():
    relation = VOCABULARY.index
    matrix = make_game("2048").topology.relation_matrix
    cell = 1 * 4 + 2
    assert matrix[cell, [4, 5, 7]].tolist() == [relation(f"cell {place}") for place in ("left 2", "left 1", "right 1")]
    assert matrix[cell, [2, 10, 14]].tolist() == [relation(f"cell {place}") for place in ("up 1", "down 1", "down 2")]
    assert matrix[cell, 0] == matrix[cell, 3] == -1
    left, up, right, down = range(16, 20)
    depths = {left: ("left", 2), up: ("up", 1), right: ("right", 1), down: ("down", 2)}
    for node, (direction, depth) in depths.items():
        assert matrix[node, cell] == relation(f"cell>{direction} at depth {depth}")
        assert matrix[cell, node] == relation(f"{direction}>cell")
    assert matrix[left, right] == -1
    large = make_game("2048:8")
    assert large.topology.relation_matrix[0, 7] == relation("cell right 5+")
    assert large.topology.relation_matrix[64 + 1, 63] == relation("cell>up at depth 4+")
    assert large.topology.vocabulary is VOCABULARY
    assert large.num_features == make_game("2048:2").num_features


def test_drawings_show_tiles_and_game_over():
    game = make_game("2048:3")
    state = state_of("2048:3", [[2, 4, 8], [0, 0, 1024], [0, 0, 2**20]])
    text = ["      2       4       8", "      .       .    1024", "      .       . 1048576", "to move: left, down"]
    assert game.render(state).split("\n") == text
    assert game.render(state.replace(terminated=jnp.bool_(True))).endswith("\nover")
    root = ET.fromstring(game.render_svg(state))
    assert [element.text for element in root if element.text] == ["2", "4", "8", "1024", "2²⁰"]
    colours = [element.get("fill") for element in root if element.tag.endswith("rect")]
    assert colours.count(EMPTY) == 4
    assert len(set(colours)) == 1 + 1 + 5  # panel, empty, and one for each tile
