import itertools
import tracemalloc

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.evaluation import openings
from alphagat.evaluation.openings import distinct, distinct_openings, openings_after, random_positions
from alphagat.games import make_game
from alphagat.games.batches import chunks, compile_init, compile_step
from alphagat.games.states import first_state
from alphagat.games.tsp import TspGame
from tests.evaluation.toy import PileGame, PileState, RandomPileGame


def _stones(states):
    return (np.asarray(states.board) != 0).sum(axis=1)


def _images(board):
    """Returns the eight images of a 3x3 board, as numpy turns and mirrors it."""
    square = np.asarray(board).reshape(3, 3)
    return {np.rot90(side, turns).tobytes() for side in (square, square.T) for turns in range(4)}


# Of tic-tac-toe there are 1, 3, 12, 38 and 108 positions after 0 to 4 plies, counted up to symmetry.
@pytest.mark.parametrize(
    ("num_openings", "plies"), [(1, 0), (2, 1), (3, 1), (4, 2), (12, 2), (13, 3), (38, 3), (39, 4), (108, 4)]
)
def test_openings_are_distinct_up_to_symmetry_after_fewest_plies(num_openings, plies):
    states = distinct_openings(make_game("tic_tac_toe"), num_openings, seed=0).states
    orbits = {frozenset(_images(board)) for board in states.board}
    assert len(orbits) == len(states.board) == num_openings
    assert (_stones(states) == plies).all()
    assert not states.terminated.any()


@pytest.mark.parametrize(("name", "counts"), [("othello:8", (1, 1, 3, 14, 60)), ("connect_four", (1, 4, 25, 121))])
def test_opening_counts_match_known_values(name, counts):
    game = make_game(name)
    for plies, num_openings in enumerate(counts):
        assert distinct_openings(game, num_openings, seed=0).actions.shape[1] <= plies
        assert distinct_openings(game, num_openings + 1, seed=0).actions.shape[1] > plies


def test_a_random_subset_of_too_many_moves_is_played(monkeypatch):
    """Tic-tac-toe has 504 moves in its 72 positions of two plies; 38 positions follow, counted up to symmetry."""
    played, play_all = [], openings.play_all
    monkeypatch.setattr(openings, "MAX_CANDIDATES", 100)
    monkeypatch.setattr(
        openings,
        "play_all",
        lambda game, states, rows, moves: played.append(len(rows)) or play_all(game, states, rows, moves),
    )
    drawn = [distinct_openings(make_game("tic_tac_toe"), 20, seed) for seed in (0, 1)]
    assert played == [9, 72, 100] * 2
    for each in drawn:
        assert len({frozenset(_images(board)) for board in each.states.board}) == 20
        assert (_stones(each.states) == 3).all()
    assert not np.array_equal(drawn[0].actions, drawn[1].actions)


def test_small_board_falls_back_to_symmetric_images():
    states = distinct_openings(make_game("tic_tac_toe"), 300, seed=0).states  # no ply has so many up to symmetry
    assert len({board.tobytes() for board in np.asarray(states.board)}) == 300
    assert len({frozenset(_images(board)) for board in states.board}) < 300
    assert (_stones(states) == 4).all()


def test_rotated_hex_boards_are_counted_once():
    # Boards of 2 + 1 stones: C(9, 2) * 7, of which 4 look the same after a half turn. Others are alike in pairs.
    game, num_openings = make_game("hex:3"), (252 + 4) // 2
    cells = np.sign(np.asarray(distinct_openings(game, num_openings, seed=0).states.cells)).reshape(-1, 9)
    assert len({frozenset((board.tobytes(), board[::-1].tobytes())) for board in cells}) == num_openings
    assert (cells != 0).sum() == num_openings * 3
    assert (np.asarray(distinct_openings(game, num_openings + 1, seed=0).states.cells) != 0).sum() == 4 * 129


class NotedState(PileState):
    """`last` `[]` int32: the last action, which no player sees."""

    last: jax.Array


class NotedGame(PileGame):
    def __init__(self, size):
        super().__init__(size)
        self.name = f"noted_pile:{size}"

    def init(self, key):
        return NotedState(**vars(super().init(key)), last=jnp.int32(-1))

    def step(self, state, action, key):
        after = super().step(PileState(state.current_player, state.rewards, state.terminated, state.pile), action, key)
        return NotedState(**vars(after), last=jnp.asarray(action, jnp.int32))


def test_positions_differing_only_in_bookkeeping_are_equal():
    # After 2 plies there are 5 piles and players to move, but 9 with the last action told apart.
    for game in (PileGame(9), NotedGame(9)):
        states = distinct_openings(game, 5, seed=0).states
        assert len(set(zip(states.pile.tolist(), states.current_player.tolist(), strict=True))) == 5


def test_transposed_chess_openings_are_equal():
    # OEIS A083276: placements with castling rights and possible en passant after 3 plies, which 8,902 games reach.
    assert len(openings_after(make_game("chess"), 3, seed=0).actions) == 5362


def test_transposed_go_openings_are_equal():
    """Of 5x5 after three plies. So early, only White's stone in a corner is caught, and a pass may precede the end."""
    expected = set()
    for moves in itertools.product(range(26), repeat=3):
        placed = [move for move in moves if move < 25]
        if len(set(placed)) < len(placed) or (25, 25) in itertools.pairwise(moves):
            continue  # illegal, or over
        stones = np.zeros(26, np.int8)
        stones[list(moves)] = 1, -1, 1
        for corner, near in ((0, (1, 5)), (4, (3, 9)), (20, (15, 21)), (24, (19, 23))):
            if stones[corner] == -1 and (stones[list(near)] == 1).all():
                stones[corner] = 0
        square = stones[:25].reshape(5, 5)
        images = [np.rot90(side, turns).tobytes() for side in (square, square.T) for turns in range(4)]
        expected.add((min(images), moves[2] == 25))
    game = make_game("go:5")
    states = jax.device_get(openings_after(game, 3, seed=0).states)
    assert len(openings.distinct(game, states, game.symmetries)) == len(expected)


KEPT = {"current_player": 1, "castling": [True, True, False, True], "en_passant": 3, "repetitions": 1, "num_moves": 7}


@pytest.mark.parametrize(
    ("name", "history", "others"),
    [
        ("chess", {"last_move": [52, 36], "reversible": 5}, KEPT),
        ("gardner_chess", {"last_move": [7, 12], "reversible": 5}, {"current_player": 1, "num_moves": 7}),
        ("breakthrough:5", {}, {"current_player": 1}),
        ("go:5", {"recent": [7, 3, 25, 1]}, {"current_player": 1, "ko": 3, "recent": [25, 3, 1, 7], "num_moves": 7}),
    ],
)
def test_only_what_bears_on_the_game_tells_positions_apart(name, history, others):
    game = make_game(name)
    for changes, number in ((history, 1), (others, 2)):
        for field, value in changes.items():
            first = first_state(game)
            changed = first.replace(**{field: jnp.asarray(value, getattr(first, field).dtype)})
            both = jax.tree.map(lambda *leaves: np.stack(leaves), first, changed)
            assert len(openings.distinct(game, both)) == number, field


def test_positions_seen_take_little_memory(monkeypatch):
    """Each would otherwise be kept with its features: 2 GB for the openings of go:19."""
    game = make_game("hex:5")
    states = jax.device_get(openings_after(game, 2, seed=0).states)
    monkeypatch.setattr(openings, "chunks", lambda number: chunks(number, 8))
    assert len(openings.distinct(game, states)) == 600  # compiled
    tracemalloc.start()
    openings.distinct(game, states)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    features = 600 * game.topology.num_nodes * game.num_features * 4
    assert peak < features / 2


def test_openings_depend_only_on_seed():
    game = make_game("connect_four")
    first, again, other = (np.asarray(distinct_openings(game, 20, seed).states.board) for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()


def test_symmetric_images_are_equally_likely():
    game = make_game("tic_tac_toe")
    counts = np.zeros(9)
    for seed in range(300):
        counts += (np.asarray(distinct_openings(game, 3, seed).states.board) != 0).sum(axis=0)
    corners, edges, centre = counts[[0, 2, 6, 8]], counts[1::2], counts[4]
    assert centre == corners.sum() == edges.sum() == 300
    assert abs(np.concatenate([corners, edges]) - 75).max() < 4 * np.sqrt(300 * 1 / 4 * 3 / 4)


def replay(game, actions):
    """Plays `[N, P]` actions from the first position."""
    num, num_plies = actions.shape
    step, keys = compile_step(game), jax.random.split(jax.random.key(0), num)
    states = compile_init(game)(keys)
    for ply in range(num_plies):
        states = step(states, actions[:, ply], keys)
    return states


@pytest.mark.parametrize("name", ["hex:3", "connect_four", "breakthrough:5"])
def test_opening_actions_lead_to_opening_states(name):
    game = make_game(name)
    openings = distinct_openings(game, 60, seed=2)
    assert openings.actions.shape[1] >= 2
    chex.assert_trees_all_equal(openings.states, replay(game, openings.actions))


@pytest.mark.parametrize(
    ("name", "plies", "num"), [("hex:5", 2, 600), ("connect_four", 2, 49), ("tic_tac_toe", 2, 72), ("hex:3", 0, 1)]
)
def test_openings_after_enumerates_all_openings(name, plies, num):
    game = make_game(name)
    openings = openings_after(game, plies, seed=0)
    assert openings.actions.shape == (num, plies)
    assert len({tuple(moves) for moves in openings.actions.tolist()}) == num
    some = openings_after(game, plies, seed=0, num_openings=min(num, 5))
    assert len(some.actions) == min(num, 5)
    chex.assert_trees_all_equal(openings.states, replay(game, openings.actions))


def test_some_of_the_openings_are_drawn_at_random():
    game = make_game("connect_four")
    drawn = [openings_after(game, 2, seed, num_openings=2).actions for seed in range(100)]
    assert len({tuple(moves) for openings in drawn for moves in openings.tolist()}) > 40  # of 49


def test_openings_after_rejects_impossible_requests():
    with pytest.raises(UserError, match="has 49 distinct openings of 2 plies, fewer than the 50 requested"):
        openings_after(make_game("connect_four"), 2, seed=0, num_openings=50)
    with pytest.raises(UserError, match="exceed the limit of 65,536; use at most 2 plies"):
        openings_after(make_game("hex:11"), 3, seed=0)
    for plies in (9, 10):
        with pytest.raises(UserError, match="every game is over after 9 plies; use openings of fewer plies"):
            openings_after(make_game("tic_tac_toe"), plies, seed=0)


def test_board_with_too_few_openings_is_rejected():
    with pytest.raises(UserError, match=r"board pile:5:0: .* at most 3 distinct"):
        distinct_openings(PileGame(5), 100, seed=0)


def test_random_positions_are_uniform_over_plies():
    game = make_game("tic_tac_toe")
    states = random_positions(game, 2000, 2, 7, seed=0)
    assert not states.terminated.any()
    stones = _stones(states)
    counts = np.bincount(stones, minlength=10)
    assert counts[:2].sum() + counts[8:].sum() == 0
    assert abs(counts[2:8] - 2000 / 6).max() < 4 * np.sqrt(2000 * 1 / 6 * 5 / 6)
    # Player 0 is to move when the numbers of stones are equal.
    boards = np.asarray(states.board)
    assert ((boards == 1).sum(axis=1) - (boards == 2).sum(axis=1) == stones % 2).all()
    assert (np.asarray(states.current_player) == stones % 2).all()


def test_moves_of_random_positions_are_independent():
    boards = np.asarray(random_positions(make_game("connect_four"), 500, 12, 12, seed=0).board).reshape(-1, 6, 7)
    stones = (boards != 0).sum(axis=1)
    assert (stones.sum(axis=1) == 12).all()
    assert (stones == 6).any(axis=1).mean() < 0.1  # almost all, if a column were drawn once per game
    # Uniform columns, not yet full: variance 12 * 1/7 * 6/7.
    assert 1.2 < stones.var() < 1.7


def test_random_positions_depend_only_on_seed():
    game = make_game("tic_tac_toe")
    first, again, other = (random_positions(game, 50, 3, 4, seed).board for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()


def test_impossible_random_positions_are_rejected(monkeypatch):
    monkeypatch.setattr("alphagat.evaluation.openings.MAX_ROUNDS", 5)
    with pytest.raises(UserError, match="max_plies=4"):
        random_positions(make_game("hex:2"), 3, 4, 4, seed=0)
    with pytest.raises(UserError, match="min_plies=3"):
        random_positions(make_game("hex:2"), 3, 3, 2, seed=0)


@pytest.mark.parametrize("number", [-3, 0, 2.5, "7"])
def test_impossible_numbers_are_refused(number):
    game = make_game("hex:2")
    for name, draw in (
        ("num_openings", lambda: distinct_openings(game, number, seed=0)),
        ("num_openings", lambda: openings_after(game, 1, seed=0, num_openings=number)),
        ("num_positions", lambda: random_positions(game, number, 0, 1, seed=0)),
    ):
        with pytest.raises(UserError, match=rf"^{name}=.*: it must be an integer, at least 1$"):
            draw()
    if number:
        with pytest.raises(UserError, match=r"^num_plies=.*: it must be an integer, at least 0$"):
            openings_after(game, number, seed=0)


def test_openings_can_be_stepped_on_the_device():
    game = make_game("hex:3")
    states = distinct_openings(game, 4, seed=0).states
    actions = np.argmax(np.asarray(states.legal_action_mask), axis=1)
    after = compile_step(game)(states, actions, jax.random.split(jax.random.key(0), 4))
    assert ((after.cells != 0).sum(axis=1) == (states.cells != 0).sum(axis=1) + 1).all()


class BlindTsp(TspGame):
    """Shows nothing but edges."""

    def observe(self, state):
        return jnp.zeros((self.num_cities, self.num_features))


def test_positions_that_differ_only_in_edges_are_distinct():
    game = BlindTsp(5)
    game.name = "blind"
    states = jax.device_get(jax.vmap(game.init)(jax.random.split(jax.random.key(0), 4)))
    states = jax.tree.map(lambda x: x[[0, 1, 0, 2, 3, 1]], states)
    assert distinct(game, states).tolist() == [0, 1, 3, 4]
    assert distinct(game, states, game.symmetries).tolist() == [0, 1, 3, 4]


def test_a_random_start_gives_openings_on_different_instances():
    opened = distinct_openings(RandomPileGame(1000), 20, seed=0)
    assert opened.actions.shape == (20, 0)
    assert len(set(opened.states.pile.tolist())) == 20
    assert set(openings_after(RandomPileGame(1000), 1, seed=3).states.pile.tolist()) < set(range(1000))
