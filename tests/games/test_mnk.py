"""m,n,k-games against OpenSpiel's, a slow reference, and known counts of positions."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest

from alphagat.games import make_game, svg
from alphagat.games.mnk import VOCABULARY
from alphagat.games.states import first_state
from tests.games.open_spiel import assert_plays_alike


@pytest.mark.parametrize(("name", "num_games"), [("tic_tac_toe", 2000), ("connect_four", 1000)])
def test_matches_open_spiel(name, num_games, record):
    games, spiel = record(name, num_games), pyspiel.load_game(name)
    assert_plays_alike(games, spiel, num_games)


class SlowGame:
    """Counts stones in every direction from every cell; shares no code with ours."""

    def __init__(self, rows, columns, run, gravity):
        self.grid = [[None] * columns for _ in range(rows)]
        self.run, self.gravity = run, gravity

    def legal(self):
        if self.gravity:
            return [column for column, top in enumerate(self.grid[0]) if top is None]
        flat = [stone for line in self.grid for stone in line]
        return [cell for cell, stone in enumerate(flat) if stone is None]

    def play(self, action, player):
        if self.gravity:
            row, column = max(row for row, line in enumerate(self.grid) if line[action] is None), action
        else:
            row, column = divmod(action, len(self.grid[0]))
        self.grid[row][column] = player

    def count(self, row, column, down, right, player):
        inside = 0 <= row < len(self.grid) and 0 <= column < len(self.grid[0])
        if not inside or self.grid[row][column] != player:
            return 0
        return 1 + self.count(row + down, column + right, down, right, player)

    def completes(self, cell, player):
        """Returns whether the player's stone in an empty cell would complete a line."""
        row, column = divmod(cell, len(self.grid[0]))
        self.grid[row][column] = player
        found = any(
            self.count(row, column, down, right, player) + self.count(row, column, -down, -right, player) > self.run
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))
        )
        self.grid[row][column] = None
        return found

    def won(self, player):
        return any(
            self.count(row, column, down, right, player) >= self.run
            for row in range(len(self.grid))
            for column in range(len(self.grid[0]))
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1))
        )


@pytest.mark.parametrize(
    ("name", "size", "num_games"),
    [
        ("gomoku:9", (9, 9, 5, False), 60),
        ("mnk:4x6x3", (4, 6, 3, False), 100),
        ("mnk:3x7x5", (3, 7, 5, False), 100),
        ("mnk:7x3x4:gravity", (7, 3, 4, True), 100),
        ("mnk:5x6x4:gravity", (5, 6, 4, True), 100),
    ],
)
def test_matches_slow_reference(name, size, num_games, record):
    games = record(name, num_games)
    for game in range(num_games):
        slow = SlowGame(*size)
        for ply in range(games.length(game)):
            assert slow.legal() == np.flatnonzero(games.legal[ply, game]).tolist()
            player = games.players[ply, game]
            slow.play(games.actions[ply, game], player)
            reward = games.rewards[ply + 1, game].tolist()
            assert reward == ([1 - 2 * player, 2 * player - 1] if slow.won(player) else [0, 0])
        assert any(reward) or not slow.legal()


def count_games(name, depth, chunk=2048):
    """Returns by ply the numbers of distinct positions, of games that long, and of games that ended there."""
    game = make_game(name)
    step = jax.jit(jax.vmap(jax.vmap(game.step, (None, 0, None)), (0, None, None)))
    actions, key = jnp.arange(game.num_actions), jax.random.key(0)
    first = game.init(key)
    level = {np.asarray(first.board).tobytes(): 1}
    counts, player = [(1, 1, 0)], 0
    for _ in range(depth):
        following, ended = collections.Counter(), collections.Counter()
        boards = list(level)
        for start in range(0, len(boards), chunk):
            part = boards[start : start + chunk]
            stones = np.zeros((chunk, len(first.board)), np.int8)
            stones[: len(part)] = [np.frombuffer(board, np.int8) for board in part]
            states = jax.tree.map(lambda x: jnp.broadcast_to(x, (chunk, *x.shape)), first)
            states = states.replace(board=jnp.asarray(stones), current_player=jnp.full(chunk, player, jnp.int8))
            legal, after = np.asarray(states.legal_action_mask), step(states, actions, key)
            stones, over = np.asarray(after.board), np.asarray(after.terminated)
            for row, action in np.argwhere(legal[: len(part)]):
                into = ended if over[row, action] else following
                into[stones[row, action].tobytes()] += level[part[row]]
        counts.append((len(following) + len(ended), following.total() + ended.total(), ended.total()))
        level, player = following, 1 - player
    return np.array(counts).T.tolist()


def test_tic_tac_toe_game_counts_match_known_values():
    positions, games, ended = count_games("tic_tac_toe", 9)
    assert games[:6] == [1, 9, 72, 504, 3024, 15120]
    assert sum(ended) == 255168
    assert sum(positions) == 5478


def test_connect_four_game_counts_match_known_values():
    positions, games, _ = count_games("connect_four", 7)
    assert games == [1, 7, 49, 343, 2401, 16807, 117649, 823536]
    assert positions == [1, 7, 49, 238, 1120, 4263, 16422, 54859]


def parse(text):
    """Reads a board of `x` (player 0), `o` (player 1) and `.`."""
    return np.array([".xo".index(stone) for stone in "".join(text.split())], np.int8)


@pytest.mark.parametrize(
    ("board", "wins"),
    [
        (". . . . . .   . . . . . .   x x x ? x x   . . . . . .   . . . . . .", True),  # six, an overline
        (". . . . . .   x x x ? . .   . . . . . x   . . . . . .   . . . . . .", False),
        (". . . x x ?   x x . . . .   . . . . . .   . . . . . .   . . . . . .", False),  # goes round the edge
        (". . . . . x   x . . . . .   . x . . . .   . . x . . .   . . . ? . .", False),  # goes round the edge
        ("x . . . . .   . x . . . .   . . ? . . .   . . . x . .   . . . . x .", True),
        (". . . . . x   . . . . x .   . . . x . .   . . x . . .   . ? . . . .", True),
        (". ? . . . .   . x . . . .   . x . . . .   . x . . . .   . x . . . .", True),
        (". ? . . . .   . x . . . .   . o . . . .   . x . . . .   . x . . . .", False),
    ],
)
def test_only_five_or_more_in_a_line_win(board, wins):
    game = make_game("mnk:5x6x5")
    state = first_state(game).replace(board=jnp.asarray(parse(board.replace("?", "."))))
    after = game.step(state, jnp.int32(board.replace(" ", "").index("?")), jax.random.key(0))
    assert bool(after.terminated) == wins
    assert after.rewards.tolist() == ([1, -1] if wins else [0, 0])


def test_drawings_show_stones_and_results():
    game = make_game("mnk:3x4x3")
    state = first_state(game).replace(board=jnp.asarray(parse("x . . .   o x . .   o . . .")))
    assert game.render(state).split("\n") == ["3 x . . .", "2 o x . .", "1 o . . .", "  a b c d", "x to move"]
    won = game.step(state, jnp.int32(game.action_names.index("c1")), jax.random.key(0))
    assert game.render(won).endswith("x won")
    assert game.render_svg(won).count(svg.MARKED_TILE) == 3
    assert game.render_svg(state).count(svg.MARKED_TILE) == 0
    draw = state.replace(board=jnp.asarray(parse("x o x o   x o x o   o x o x")), terminated=jnp.bool_(True))
    assert game.render(draw).endswith("draw")
    falling = make_game("mnk:3x4x3:gravity").render(state.replace(num_actions=4)).split("\n")
    assert falling == ["  x . . .", "  o x . .", "  o . . .", "  1 2 3 4", "x to move"]


def test_features_show_stones_playable_cells_and_heights():
    game = make_game("mnk:3x4x3:gravity")
    state = first_state(game).replace(board=jnp.asarray(parse("x . . .   o . . .   x o . .")))
    nodes = np.asarray(game.observe(state))
    own, opponent, empty, playable, parity = nodes[:12, :5].T.reshape(5, 3, 4)
    assert own.tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]
    assert opponent.tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    assert empty.tolist() == [[0, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1]]
    assert playable.tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]]
    assert parity.tolist() == [[0] * 4, [1] * 4, [0] * 4]
    assert nodes[12:, 3].tolist() == [0, 1, 1, 1]
    assert not nodes[12:, [0, 1, 2, 4]].any()
    assert (nodes[:, 5] == np.float32(0.6)).all()
    suits, completing = nodes[:, 6], nodes[:12, 7:].T.reshape(2, 3, 4)
    assert suits[:12].reshape(3, 4).tolist() == [[1] * 4, [0] * 4, [1] * 4]
    assert not suits[12:].any()
    assert not completing.any()
    other = np.asarray(game.observe(state.replace(current_player=jnp.int8(1))))
    assert (other[:, [1, 0, 2, 3, 4, 5, 8, 7]] == nodes[:, [0, 1, 2, 3, 4, 5, 7, 8]]).all()
    assert (other[:, 6] == 1 - suits).all()


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("connect_four", (6, 7, 4, True)),
        ("tic_tac_toe", (3, 3, 3, False)),
        ("gomoku:7", (7, 7, 5, False)),
        ("mnk:4x9x4", (4, 9, 4, False)),
    ],
)
def test_features_show_where_stones_complete_lines(name, size):
    game, generator = make_game(name), np.random.default_rng(0)
    observe, found = jax.jit(game.observe), 0
    for _ in range(12):
        board = generator.choice(3, size[0] * size[1], p=(0.3, 0.4, 0.3)).astype(np.int8)
        player = int(generator.integers(2))
        state = first_state(game).replace(board=jnp.asarray(board), current_player=jnp.int8(player))
        slow = SlowGame(*size)
        slow.grid = [[{0: None, 1: 0, 2: 1}[stone] for stone in line] for line in board.reshape(size[:2]).tolist()]
        features = np.asarray(observe(state))[: len(board), 7:]
        for cell in range(len(board)):
            expected = [board[cell] == 0 and slow.completes(cell, each) for each in (player, 1 - player)]
            assert features[cell].tolist() == expected
            found += sum(expected)
    assert found > 9


def test_no_height_suits_a_player_without_gravity():
    nodes = np.asarray(make_game("gomoku:5").observe(first_state(make_game("gomoku:5"))))
    assert not nodes[:, [4, 6]].any()


def test_relations_describe_sender_from_receiver_view():
    relation = VOCABULARY.index
    matrix = make_game("connect_four").topology.relation_matrix
    cell = 2 * 7 + 3
    assert matrix[cell, cell - 7] == relation("n1")
    assert matrix[cell, cell + 3 * 8] == relation("se3")
    assert matrix[cell, cell - 3] == relation("w3")
    assert matrix[0, 4] == matrix[0, 15] == -1  # four away; a knight's move
    columns = range(42, 49)
    assert matrix[columns[3], cell] == relation("cell>column at height 3")
    assert matrix[columns[2], cell] == matrix[cell, columns[2]] == -1
    assert matrix[cell, columns[3]] == relation("column>cell")
    assert matrix[columns[3], columns[2]] == relation("column to the left")
    assert matrix[columns[3], columns[4]] == relation("column to the right")
    assert make_game("mnk:3x9x7").topology.relation_matrix[0, 6] == relation("e5+")
    tall = make_game("mnk:12x3x4:gravity").topology.relation_matrix
    assert tall[36, [0, 9, 33]].tolist() == [
        relation(f"cell>column at height {height}") for height in ("8+", "8+", "0")
    ]


def test_boards_share_one_vocabulary():
    games = [make_game(name) for name in ("tic_tac_toe", "connect_four", "gomoku:9", "mnk:19x19x6:gravity")]
    assert all(game.topology.vocabulary is VOCABULARY for game in games)
    assert len({game.num_features for game in games}) == 1
