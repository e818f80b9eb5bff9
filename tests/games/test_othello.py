"""Othello against OpenSpiel's, Pgx's and a slow reference, known counts of games, and what its features promise."""

import jax
import numpy as np
import pyspiel
import pytest

from alphagat.games import make_game, svg
from alphagat.games.batches import compile_init, take
from alphagat.games.othello import VOCABULARY
from tests.games import pgx_games
from tests.games.open_spiel import assert_plays_alike, count_actions
from tests.games.pgx_games import replay
from tests.games.playing import jitted_step, perft, play

NUM_GAMES = 100


def test_matches_open_spiel(record):
    games, spiel = record("othello:8", NUM_GAMES), pyspiel.load_game("othello")
    assert_plays_alike(games, spiel, NUM_GAMES)
    assert count_actions(games, 64, NUM_GAMES) > NUM_GAMES / 4


def test_matches_pgx(record):
    """Pgx asks both players to pass before it calls a game with empty cells over; all else agrees."""
    games = record("othello:8", NUM_GAMES)
    over = games.terminated[:-1]
    theirs = replay(pgx_games.make("othello"), np.where(over, 64, games.actions))
    running = ~games.terminated
    assert (theirs.legal[running] == games.legal[running]).all()
    assert (theirs.players[running] == games.players[running]).all()
    assert not theirs.terminated[running].any()
    assert theirs.terminated[-1].all()
    assert (theirs.rewards.sum(axis=0) == games.rewards.sum(axis=0)).all()
    late = theirs.terminated.argmax(axis=0) - games.terminated.argmax(axis=0)
    assert set(late) <= {0, 2}


class SlowGame:
    """Walks from cell to cell with a dictionary; shares no code with ours."""

    def __init__(self, size):
        self.size, half = size, size // 2
        self.discs = {(half - 1, half): 0, (half, half - 1): 0, (half - 1, half - 1): 1, (half, half): 1}

    def flipped(self, cell, player):
        if cell in self.discs:
            return []
        found = []
        for down, right in ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)):
            row, column, run = cell[0] + down, cell[1] + right, []
            while self.discs.get((row, column)) == 1 - player:
                run.append((row, column))
                row, column = row + down, column + right
            found += run if self.discs.get((row, column)) == player else []
        return found

    def moves(self, player):
        cells = [divmod(cell, self.size) for cell in range(self.size**2)]
        return [row * self.size + column for row, column in cells if self.flipped((row, column), player)]

    def legal(self, player):
        over = not self.moves(0) and not self.moves(1)
        return self.moves(player) or ([] if over else [self.size**2])

    def play(self, action, player):
        cell = divmod(action, self.size)
        if action < self.size**2:
            self.discs |= dict.fromkeys([*self.flipped(cell, player), cell], player)

    def result(self):
        ownership = list(self.discs.values())
        return np.sign(ownership.count(0) - ownership.count(1))


@pytest.mark.parametrize(("size", "num_games"), [(4, 200), (6, 50), (10, 6), (12, 4)])
def test_matches_slow_reference(size, num_games, record):
    games = record(f"othello:{size}", num_games)
    for game in range(num_games):
        slow = SlowGame(size)
        for ply in range(games.length(game)):
            player = int(games.players[ply, game])
            assert slow.legal(player) == np.flatnonzero(games.legal[ply, game]).tolist()
            slow.play(int(games.actions[ply, game]), player)
        assert not slow.legal(0)
        assert games.rewards[games.length(game), game].tolist() == [slow.result(), -slow.result()]
    results = games.rewards.sum(axis=0)[:, 0]
    assert size != 4 or set(results) == {-1, 0, 1}


@pytest.mark.parametrize(("size", "num_games", "num_wins"), [(4, 200, 10), (6, 20, 0), (8, 10, 0), (12, 2, 0)])
def test_winning_actions_flip_all_discs(size, num_games, num_wins, record):
    game, games = make_game(f"othello:{size}"), record(f"othello:{size}", num_games)
    named = np.asarray(jax.jit(jax.vmap(jax.vmap(game.winning_actions)))(games.states))
    found, step = 0, jitted_step(f"othello:{size}")
    for number in range(num_games):
        slow = SlowGame(size)
        for ply in range(games.length(number)):
            player = int(games.players[ply, number])
            num_discs = list(slow.discs.values()).count(1 - player)
            cells = [divmod(cell, size) for cell in range(size**2)]
            wins = [cell for cell, place in enumerate(cells) if len(slow.flipped(place, player)) == num_discs]
            assert np.flatnonzero(named[ply, number]).tolist() == wins
            for cell in wins:
                after = step(take(games.states, (ply, number)), np.int32(cell), jax.random.key(0))
                assert after.terminated
                assert after.rewards[player] == 1
            found += len(wins)
            slow.play(int(games.actions[ply, number]), player)
    assert found >= num_wins


@pytest.mark.parametrize("size", [4, 6, 8])
def test_the_longest_game_has_a_pass_between_any_two_discs(size):
    discs = size * size - 4
    assert make_game(f"othello:{size}").max_plies == discs + (discs - 1)


def test_perft_matches_known_counts():
    game = make_game("othello:8")
    assert perft(game, compile_init(game)(jax.random.key(0)[None]), 6) == [4, 12, 56, 244, 1396, 8200]


def test_features_show_discs_moves_parity_and_edges():
    game = make_game("othello:4")
    #   a b c d
    # 1 . x . .
    # 2 . x x .
    # 3 . x o .     player 1 (o) is to move
    # 4 . . . .
    nodes = np.asarray(game.observe(play("othello:4", "b1")))
    own, opponent, empty, moves, replies, odd, near, far = nodes[:-1].T.reshape(8, 4, 4)
    assert own.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert opponent.tolist() == [[0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert (empty == 1 - own - opponent).all()
    assert moves.tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert replies.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1]]
    assert odd.all()
    third = np.float32(1 / 3)
    assert near.tolist() == [[0, 0, 0, 0], [0, third, third, 0], [0, third, third, 0], [0, 0, 0, 0]]
    assert far.tolist() == [[0, third, third, 0], [third] * 4, [third] * 4, [0, third, third, 0]]
    assert nodes[-1].tolist() == [0, 0, 0, 0, 0, 1, 0, 0]
    assert not np.asarray(game.observe(play("othello:4", "")))[:, 5].any()


def test_truncated_game_goes_to_player_with_more_discs():
    game = make_game("othello:4")
    assert game.truncation_rewards(play("othello:4", "")).tolist() == [0, 0]
    assert game.truncation_rewards(play("othello:4", "b1")).tolist() == [1, -1]


def test_edge_distances_are_independent_of_size():
    fixed = {size: make_game(f"othello:{size}")._edge_distances.reshape(size, size, 2) for size in (8, 12)}
    assert (fixed[8][:4, :4] == fixed[12][:4, :4]).all()
    assert (fixed[12][3:-3, 3:-3] == 1).all()
    assert fixed[8][0, 2].tolist() == [0, np.float32(2 / 3)]


def test_drawings_show_discs_moves_passes_and_results(record):
    game = make_game("othello:4")
    state = play("othello:4", "b1")
    lines = game.render(state).split("\n")
    assert lines == ["   a b c d", " 1 . x . .", " 2 . x x .", " 3 . x o .", " 4 . . . .", "o to move, 4 to 1 discs"]
    # discs, and dots where the player to move may move
    assert [game.render_svg(state).count(colour) for colour in svg.COLOURS] == [4, 1 + 3]
    games = record("othello:4", 200)

    def text(ply, number):
        return game.render(jax.tree.map(lambda x: x[ply, number], games.states))

    ply, number = np.argwhere(games.legal[..., -1])[0]
    player = "xo"[games.players[ply, number]]
    assert f"{player} has to pass" in text(ply, number)
    assert np.asarray(game.observe(jax.tree.map(lambda x: x[ply, number], games.states)))[-1, 3] == 1
    for reward, result in ((1, "x won"), (0, "draw, 8 to 8"), (-1, "o won")):
        number = np.flatnonzero((games.rewards.sum(axis=0)[:, 0] == reward) & games.terminated[-1])[0]
        assert result in text(-1, number)


def test_relations_describe_sender_from_receiver_view():
    relation = VOCABULARY.index
    matrix = make_game("othello:8").topology.relation_matrix
    cell = 2 * 8 + 3
    assert matrix[cell, cell - 8] == relation("n1")
    assert matrix[cell, cell + 4 * 9] == relation("se4")
    assert matrix[cell, cell - 3] == relation("w3")
    assert matrix[0, 7] == relation("e5+")
    assert matrix[63, 0] == relation("nw5+")
    assert matrix[0, 10] == -1  # a knight's move
    assert matrix[64, cell] == relation("cell>pass")
    assert matrix[cell, 64] == relation("pass>cell")


def test_sizes_share_one_vocabulary():
    games = [make_game(f"othello:{size}") for size in (4, 12)]
    assert all(game.topology.vocabulary is VOCABULARY for game in games)
    assert [game.topology.grid_shape for game in games] == [(4, 4), (12, 12)]
