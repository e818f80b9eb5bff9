"""Breakthrough against OpenSpiel's, move by move, a slow reference, and what its features promise."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest

from alphagat.games import make_game, svg
from alphagat.games.breakthrough import VOCABULARY
from alphagat.games.states import first_state


@functools.cache
def jitted_step(name):
    """Returns a compiled step of `[B]` states by `[B]` actions."""
    return jax.jit(lambda state, action: jax.vmap(make_game(name).step, (0, 0, None))(state, action, jax.random.key(0)))


def starts(name, num_games, rows_of_pieces=2):
    """Returns `[num_games]` first positions; OpenSpiel fills one row each on boards of less than six rows."""
    game = make_game(name)
    first = first_state(game)
    board = np.array(first.board)
    board[rows_of_pieces : game.size - rows_of_pieces] = 0
    first = first.replace(board=jnp.asarray(board))
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (num_games, *x.shape)), first)


@functools.cache
def spiel_game(size):
    return pyspiel.load_game(f"breakthrough(rows={size},columns={size})")


@functools.cache
def our_action(size, player, their_action):
    """Reads what OpenSpiel calls an action, such as `b6a5*`: its first player is at the top and moves down."""
    text = spiel_game(size).new_initial_state().action_to_string(player, their_action).rstrip("*")
    column, row, to_column, to_row = (ord(letter) - ord(first) for letter, first in zip(text, "a1a1"))
    up, to_up = (row, to_row) if player == 1 else (size - 1 - row, size - 1 - to_row)
    name = f"{chr(column + ord('a'))}{up + 1}{chr(to_column + ord('a'))}{to_up + 1}"
    return make_game(f"breakthrough:{size}").action_names.index(name)


@pytest.mark.parametrize(("size", "rows_of_pieces", "num_games"), [(5, 1, 80), (6, 2, 60), (7, 2, 50), (8, 2, 50)])
def test_matches_open_spiel(size, rows_of_pieces, num_games, game_seed):
    """Plays at random; every other game captures where it can, because pieces seldom run out otherwise."""
    random = np.random.default_rng((game_seed, size))
    ours = starts(f"breakthrough:{size}", num_games, rows_of_pieces)
    theirs = [spiel_game(size).new_initial_state() for _ in range(num_games)]
    ends = set()
    while not ours.terminated.all():
        legal, running = np.asarray(ours.legal_action_mask), ~np.asarray(ours.terminated)
        actions = np.zeros(num_games, np.int32)
        for game in np.flatnonzero(running):
            state, player = theirs[game], int(ours.current_player[game])
            assert state.current_player() == player
            translated = {our_action(size, player, action): action for action in state.legal_actions()}
            assert sorted(translated) == np.flatnonzero(legal[game]).tolist()
            captures = [move for move, action in translated.items() if "*" in state.action_to_string(player, action)]
            actions[game] = random.choice(captures if captures and game % 2 else sorted(translated))
            state.apply_action(translated[actions[game]])
        ours = jitted_step(f"breakthrough:{size}")(ours, actions)
        rewards, over, board = (np.asarray(x) for x in (ours.rewards, ours.terminated, ours.board))
        for game in np.flatnonzero(running):
            assert over[game] == theirs[game].is_terminal()
            assert rewards[game].tolist() == theirs[game].returns()
        ends |= {"reached" if -1 in row else "captured" for row in board[running & over, -1]}
    assert ends == {"reached", "captured"} or rows_of_pieces == 2


class SlowGame:
    """Keeps two sets of (column, row) that never turn; shares no code with ours."""

    def __init__(self, size):
        self.size = size
        self.pieces = [{(x, y) for x in range(size) for y in rows} for rows in ((0, 1), (size - 1, size - 2))]

    def legal(self, player):
        own, other, way = self.pieces[player], self.pieces[1 - player], (1, -1)[player]
        for x, y in own:
            for side in (-1, 0, 1):
                target = (x + side, y + way)
                if 0 <= x + side < self.size and target not in own and (side != 0 or target not in other):
                    yield (x, y), target

    def play(self, player, origin, target):
        self.pieces[player] ^= {origin, target}
        self.pieces[1 - player] -= {target}

    def won(self, player):
        last = (self.size - 1, 0)[player]
        return not self.pieces[1 - player] or any(y == last for _, y in self.pieces[player])


@pytest.mark.parametrize(("size", "num_games"), [(5, 32)])
def test_matches_slow_reference_by_action_names(size, num_games, record):
    name = f"breakthrough:{size}"
    games, ours = record(name, num_games), make_game(name)
    for game in range(num_games):
        slow = SlowGame(size)
        for ply in range(games.length(game)):
            state = jax.tree.map(lambda x, ply=ply, game=game: x[ply, game], games.states)
            player = int(state.current_player)
            names = {
                f"{'abcdefgh'[x]}{y + 1}{'abcdefgh'[to_x]}{to_y + 1}": ((x, y), (to_x, to_y))
                for (x, y), (to_x, to_y) in slow.legal(player)
            }
            legal = np.flatnonzero(games.legal[ply, game])
            assert sorted(names) == sorted(ours.action_name(state, action) for action in legal)
            slow.play(player, *names[ours.action_name(state, games.actions[ply, game])])
            reward = games.rewards[ply + 1, game].tolist()
            assert reward == ([1 - 2 * player, 2 * player - 1] if slow.won(player) else [0, 0])
        assert slow.won(player)


def position(text, player=0):
    """Returns the state of a 5 x 5 board drawn upright: `x` is player 0, who moves up."""
    board = np.array([".xo".index(piece) for piece in "".join(text.split())], np.int8).reshape(5, 5)
    board = np.where(board == 2, -1, board).astype(np.int8)
    state = first_state(make_game("breakthrough:5"))
    return state.replace(board=jnp.asarray(board if player == 0 else -board[::-1]), current_player=jnp.int8(player))


def names_of_legal(state):
    game = make_game("breakthrough:5")
    return {game.action_name(state, action) for action in np.flatnonzero(state.legal_action_mask)}


def move(state, name):
    """Plays an action by the name it has in this state."""
    game = make_game("breakthrough:5")
    action = next(a for a in np.flatnonzero(state.legal_action_mask) if game.action_name(state, a) == name)
    after = jitted_step("breakthrough:5")(jax.tree.map(lambda x: x[None], state), np.array([action], np.int32))
    return jax.tree.map(lambda x: x[0], after)


FIGHT = """
. . . . o
o . . . .
. o o . .
. x . . .
. . . . x
"""


@pytest.mark.parametrize("size", [5, 6, 8])
def test_the_longest_game_moves_every_piece_to_the_last_row_but_one(size):
    """Each move is a step of one row; then one more step wins."""
    steps = size * (size - 2) + size * (size - 3)  # of the first and of the second row of a player
    assert make_game(f"breakthrough:{size}").max_plies == 2 * steps + 1


def test_pieces_capture_diagonally_and_never_straight():
    assert names_of_legal(position(FIGHT)) == {"b2a3", "b2c3", "e1d2", "e1e2"}
    theirs = "e5d4 e5e4 a4a3 b3a2 b3c2 c3b2 c3c2 c3d2"
    assert names_of_legal(position(FIGHT, player=1)) == set(theirs.split())
    after = move(position(FIGHT), "b2c3")
    assert make_game("breakthrough:5").render(after).split("\n") == [
        "5 . . . . o",
        "4 o . . . .",
        "3 . o x . .",
        "2 . . . . .",
        "1 . . . . x",
        "  a b c d e",
        "o to move, down",
    ]


@pytest.mark.parametrize(("player", "capture"), [(0, "a2b3"), (1, "b3a2")])
def test_capturing_the_last_piece_wins(player, capture):
    after = move(position(". . . . .   . . . . .   . o . . .   x . . . .   . . . . .", player), capture)
    assert after.terminated
    assert after.rewards.tolist() == [1 - 2 * player, 2 * player - 1]
    assert not after.legal_action_mask.any()


def test_drawings_show_pieces_player_to_move_and_winner():
    game = make_game("breakthrough:5")
    race = ". . . . o   x . . . .   . . . . .   . . . . o   . . . . x"
    assert game.render(position(race)).endswith("x to move, up")
    for player, last, says in ((0, "a4b5", "x won"), (1, "e2d1", "o won")):
        after = move(position(race, player), last)
        assert game.render(after).endswith(says)
        drawing = game.render_svg(after)
        assert drawing.count(svg.MARKED_TILE) == 1
        assert [drawing.count(colour) for colour in svg.COLOURS] == [2, 2]
    assert game.render_svg(position(race)).count(svg.MARKED_TILE) == 0


def test_both_players_see_the_same_board():
    game = make_game("breakthrough:5")
    own, opponent, empty, to_go, to_defend = np.asarray(game.observe(position(FIGHT))).T.reshape(5, 5, 5)
    assert np.argwhere(own).tolist() == [[3, 1], [4, 4]]
    assert np.argwhere(opponent).tolist() == [[0, 4], [1, 0], [2, 1], [2, 2]]
    assert (own + opponent + empty == 1).all()
    assert to_go[:, 2].tolist() == [0, 1 / 8, 2 / 8, 3 / 8, 4 / 8]
    assert (to_go + to_defend == 4 / 8).all()
    # The same position upside down with exchanged colours, seen by the other player.
    turned = "\n".join(FIGHT.translate(str.maketrans("xo", "ox")).split("\n")[::-1])
    assert (game.observe(position(turned, player=1)) == game.observe(position(FIGHT))).all()


def test_relations_describe_sender_from_receiver_view():
    matrix, relation = make_game("breakthrough:6").topology.relation_matrix, VOCABULARY.index
    cell = 3 * 6 + 2
    assert matrix[cell, cell - 6] == relation("ahead")
    assert matrix[cell, cell - 7] == relation("ahead left")
    assert matrix[cell, cell + 7] == relation("behind right")
    assert matrix[cell, cell + 1] == matrix[cell, cell - 12] == matrix[11, 0] == -1  # beside; two ahead; round the edge
    assert (matrix >= 0).sum() == 36 + 2 * make_game("breakthrough:6").num_actions


def test_sizes_share_one_vocabulary_and_count_steps():
    for size in (5, 6, 7, 8):
        game = make_game(f"breakthrough:{size}")
        assert game.topology.vocabulary is VOCABULARY
        assert game.num_features == make_game("breakthrough:5").num_features
        assert game.num_actions == (3 * size - 2) * (size - 1)
