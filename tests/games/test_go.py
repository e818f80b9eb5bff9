"""Go against Pgx's and OpenSpiel's, move by move, and what its features promise."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
import pytest

from alphagat.games import make_game
from alphagat.games.drawings.stones import LAST, STONES, star_points
from alphagat.games.go import VOCABULARY
from tests.games.pgx_games import make_go, num_bytes, replay
from tests.games.playing import play

NUM_GAMES = 60


@functools.cache
def compile_long_play(name):
    """Plays random games in which only who has no other move passes, so that many stones are captured."""
    game = make_game(name)

    def play(key):
        def ply(state, key):
            logits = jnp.where(state.legal_action_mask, 0.0, -1e9).at[:, -1].add(-1e8)
            action = jax.random.categorical(key, logits).astype(jnp.int32)
            after = jax.vmap(game.step, in_axes=(0, 0, None))(state, action, key)
            return after, (action, after)

        first = jax.vmap(game.init)(jax.random.split(key, NUM_GAMES))
        _, (actions, rest) = jax.lax.scan(ply, first, jax.random.split(key, game.max_plies))
        states = jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), first, rest)
        return actions, states, states.legal_action_mask

    return jax.jit(play)


@pytest.fixture(scope="module")
def long_games(game_seed):
    """Returns a function of a board's name to actions `[T, B]`, and states and legal actions of `[T + 1, B]`."""

    @functools.cache
    def play(name):
        return jax.tree.map(np.asarray, compile_long_play(name)(jax.random.key(game_seed)))

    return play


@pytest.mark.parametrize("name", ["go:5", "go:8:6.5"])
def test_matches_pgx(name, long_games):
    game, (actions, states, legal) = make_game(name), long_games(name)
    theirs = replay(make_go(size=game.size, komi=game.komi), actions)
    assert (legal == theirs.legal).all()
    assert (states.current_player == theirs.players).all()
    assert (states.rewards == theirs.rewards).all()
    assert (states.terminated == theirs.terminated).all()
    own = np.where(states.current_player[..., None] == 0, states.chains, -states.chains.astype(int))
    seen = theirs.observations.reshape(*own.shape, -1)
    assert (seen[..., 0] == (own > 0)).all()
    assert (seen[..., 1] == (own < 0)).all()
    assert 3 * num_bytes(jax.tree.map(lambda x: x[-1], states)) < num_bytes(theirs.state)


def spiel_actions(spiel):
    """Maps the names of all actions to OpenSpiel's numbers."""
    state = spiel.new_initial_state()
    return {state.action_to_string(action).split()[1].lower(): action for action in state.legal_actions()}


@pytest.mark.parametrize("name", ["go:5", "go:8:6.5"])
def test_matches_open_spiel(name, long_games):
    game, (actions, states, legal) = make_game(name), long_games(name)
    spiel = pyspiel.load_game(f"go(board_size={game.size},komi={game.komi})")
    theirs = spiel_actions(spiel)
    theirs = np.array([theirs[action] for action in game.action_names])
    for number in range(NUM_GAMES):
        state = spiel.new_initial_state()
        length = int(states.num_moves[-1, number])
        for ply in range(length):
            assert not state.is_terminal()
            assert state.legal_actions() == sorted(theirs[legal[ply, number]].tolist())
            state.apply_action(int(theirs[actions[ply, number]]))
        assert state.is_terminal()
        stones, passed = (
            np.sign(states.chains[: length + 1, number]),
            actions[length - 1, number] == game.num_actions - 1,
        )
        repeated = not passed and (stones[:-1] == stones[-1]).all(axis=1).any()
        # OpenSpiel calls a repetition a draw; with us, as with Pgx, whoever repeats loses.
        assert state.returns() == ([0, 0] if repeated else states.rewards[length, number].tolist())


def rows(name, state):
    return make_game(name).render(state).replace(" ", "").split("\n")


# . x o .      b1 and c1 are the ko: Black takes at c2 what White has just put there
KO = "b3 c3 a2 d2 b1 c1 e5 b2 c2"


def test_ko_cannot_be_retaken_immediately():
    name = "go:5"
    game, state = make_game(name), play(name, KO)
    assert rows(name, state)[2:5] == ["3.xo..", "2x.xo.", "1.xo.."]
    ko = game.action_names.index("b2")
    assert not state.legal_action_mask[ko]
    assert np.flatnonzero(np.asarray(game.observe(state))[:, 4]).tolist() == [ko]
    later = play(name, f"{KO} e4 e3")
    assert later.legal_action_mask[ko]
    assert rows(name, play(name, f"{KO} e4 e3 b2"))[2:5] == ["3.xo.x", "2xo.o.", "1.xo.."]


# 2 x x o . .
# 1 . o . o .   White sends two stones: a1; Black takes them at c1; White takes one back at b1
SUPERKO = "a2 c2 b2 d1 e5 b1 e4 a1 c1"


def test_repeating_a_position_loses():
    state = play("go:5", f"{SUPERKO} b1")
    assert rows("go:5", state)[3:5] == rows("go:5", play("go:5", SUPERKO[:-6]))[3:5] == ["2xxo..", "1.o.o."]
    assert state.terminated
    assert state.rewards.tolist() == [1, -1]
    assert rows("go:5", state)[-1] == "move10:xwon,orepeatedaposition"
    assert not play("go:5", f"{SUPERKO} e3").terminated
    names = make_game("go:5").action_names
    labels = np.array([[names.index(move)] for move in f"{SUPERKO} b1".split()])
    theirs = replay(make_go(size=5), labels)
    assert theirs.terminated[:, 0].tolist() == [False] * 10 + [True]
    assert theirs.rewards[-1, 0].tolist() == [1, -1]
    spiel = pyspiel.load_game("go(board_size=5)")
    drawn = spiel.new_initial_state()
    for move in f"{SUPERKO} b1".split():
        drawn.apply_action(spiel_actions(spiel)[move])
    assert drawn.is_terminal()
    assert drawn.returns() == [0, 0]


# By the number of moves since the repeated position; random games ended so.
LONG_CYCLES = {
    6: "d2 d4 b2 b3 c3 a2 c1 e3 b5 a1 c2 e5 e1 a5 c4 d5 d1 a4 d3 a3 c5 b1 e4 d5 e5 d4 e4 e5",
    48: (
        "a1 a2 e1 c1 e5 d5 e2 c2 a3 a4 d4 b4 e4 e3 c3 c4 d2 c5 b1 d1 a5 b2 a1 b1 b3 d3 d2 e5 c3 b5 e2 a5 e4 b3 pass a3 "
        "pass e1 e2 c3 pass d4 pass d2 pass e2 pass e4 a1"
    ),
}


@pytest.mark.parametrize("distance", LONG_CYCLES)
def test_the_superko_remembers_the_whole_game(distance):
    *moves, last = LONG_CYCLES[distance].split()
    before, state = play("go:5", " ".join(moves)), play("go:5", LONG_CYCLES[distance])
    repeated = play("go:5", " ".join(moves[: len(moves) + 1 - distance]))
    assert (np.sign(state.chains) == np.sign(repeated.chains)).all()
    assert not before.terminated
    assert state.terminated
    assert state.rewards[before.current_player] == -1
    names = make_game("go:5").action_names
    theirs = replay(make_go(size=5), np.array([[names.index(move)] for move in (*moves, last)]))
    assert theirs.terminated[-2:, 0].tolist() == [False, True]
    assert theirs.rewards[-1, 0].tolist() == state.rewards.tolist()


def test_chain_without_liberties_is_captured():
    state = play("go:5", "a1 b1 a2 b2 e5 a3")
    assert rows("go:5", state)[2:5] == ["3o....", "2.o...", "1.o..."]


def test_large_board_counts_exceed_one_byte():
    name = "go:13"
    game, state = make_game(name), play("go:13", "n1 m1 m2 n2 l1")
    assert [line[-3:] for line in rows(name, state)[11:13]] == [".xo", "xo."]
    n1, m1 = (game.action_names.index(cell) for cell in ("n1", "m1"))
    assert np.flatnonzero(state.liberties == 1).tolist() == [m1]
    assert state.legal_action_mask[n1]
    taken = play(name, "n1 m1 m2 n2 l1 a1 n3 a2 n1")
    assert [line[-3:] for line in rows(name, taken)[10:13]] == ["..x", ".x.", "x.x"]


@pytest.mark.parametrize("name", ["go:5", "go:8:6.5"])
def test_liberties_match_a_search(name, long_games):
    size, (_, states, _) = make_game(name).size, long_games(name)
    seen = set()
    for ply, game in np.ndindex(len(states.chains), 4):
        stones = np.sign(states.chains[ply, game]).reshape(size, size)
        expected = [liberties_at(stones, *cell) if stones[cell] else 0 for cell in np.ndindex(size, size)]
        assert states.liberties[ply, game].tolist() == expected
        seen.update(expected)
    assert seen >= {0, 1, 2, 3, 4, 5}


def liberties_at(stones: np.ndarray, row: int, column: int) -> int:
    """Returns the number of liberties of the chain at a stone, by a search over its stones."""
    chain, liberties, waiting = {(row, column)}, set(), [(row, column)]
    while waiting:
        row, column = waiting.pop()
        for cell in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
            if not all(0 <= index < len(stones) for index in cell):
                continue
            if stones[cell] == 0:
                liberties.add(cell)
            elif stones[cell] == stones[row, column] and cell not in chain:
                chain.add(cell)
                waiting.append(cell)
    return len(liberties)


def test_two_passes_end_game_without_dead_stone_removal():
    name = "go:5:0.5"
    # Black has c1 to c5 and all to the left of it; a lone white stone there makes those points neutral.
    moves = "c1 d1 c2 d2 c3 d3 c4 d4 c5 d5"
    state = play(name, f"{moves} pass pass")
    assert state.rewards.tolist() == [1, -1]
    assert rows(name, state)[-1] == "move12:xwonby4.5points"
    state = play(name, f"{moves} pass a1 pass pass")
    assert state.rewards.tolist() == [-1, 1]
    assert rows(name, state)[-1] == "move14:owonby6.5points"
    assert state.terminated
    assert not state.legal_action_mask.any()
    assert play("go:5:4.5", f"{moves} pass pass").rewards.tolist() == [1, -1]
    assert play("go:5:5.5", f"{moves} pass pass").rewards.tolist() == [-1, 1]
    assert make_game(name).truncation_rewards(play(name, moves)).tolist() == [1, -1]
    assert make_game("go:5").truncation_rewards(play("go:5", moves)).tolist() == [-1, 1]


def test_features_are_from_view_of_player_to_move():
    name = "go:5:6.5"
    game = make_game(name)
    # 5 x o . . .
    # 4 . . . . .   White's b5 puts a5 in atari; Black is to move
    nodes = np.asarray(game.observe(play(name, "a5 c3 pass b5")))
    own, opponent, empty, atari, ko, legal = nodes.T[:6]
    assert np.flatnonzero(own).tolist() == [0] == np.flatnonzero(atari).tolist()
    assert np.flatnonzero(opponent).tolist() == [1, 12]
    assert (empty[:25] == 1 - own[:25] - opponent[:25]).all()
    assert not ko.any()
    assert (legal == np.append(empty[:25], 1)).all()
    assert [np.flatnonzero(column).tolist() for column in nodes.T[6:10]] == [[1], [25], [12], [0]]
    lines = nodes.T[10:13, :25].reshape(3, 5, 5)
    assert lines[2].sum() == lines[2, 2, 2] == 1
    assert lines[1].sum() == 8
    assert (lines.sum(axis=0) == 1).all()
    assert not nodes[25, :5].any()
    assert not nodes[25, 10:13].any()
    assert (nodes[:, 13:16] == np.float32([-0.65, 0, 4 / 50])).all()
    assert [np.flatnonzero(column).tolist() for column in nodes.T[16:]] == [[1], []]
    two_stones = np.asarray(game.observe(play(name, "a3 c3")))  # with three and four liberties
    assert [np.flatnonzero(column).tolist() for column in two_stones.T[16:]] == [[], [10]]
    passed = np.asarray(game.observe(play(name, "a5 c3 pass")))
    assert (passed[:, 13:16] == np.float32([0.65, 1, 3 / 50])).all()
    assert (passed[[0, 12], :2] == [[0, 1], [1, 0]]).all()


def test_relations_describe_sender_from_receiver_view():
    relation = VOCABULARY.index
    matrix = make_game("go:5").topology.relation_matrix
    assert matrix[12, 7] == relation("n")
    assert matrix[12, 18] == relation("se")
    assert matrix[12, 2] == matrix[0, 24] == -1
    assert (matrix[25, :25] == relation("cell>pass")).all()
    assert (matrix[:25, 25] == relation("pass>cell")).all()


def test_boards_share_one_vocabulary():
    games = [make_game(name) for name in ("go:5", "go:19", "go:9:0.5")]
    assert all(game.topology.vocabulary is VOCABULARY for game in games)
    assert len({game.num_features for game in games}) == 1
    assert games[0].komi == 7.5


def test_drawing_shows_stones_and_last_move():
    game, state = make_game("go:5"), play("go:5", "b3 c3 a2")
    drawing = game.render_svg(state)
    assert [drawing.count(colour) for colour in STONES] == [2, 1]
    assert drawing.count(LAST) == 1
    assert game.render_svg(play("go:5", "b3 pass")).count(LAST) == 0
    assert star_points(9) == [(2, 2), (2, 6), (4, 4), (6, 2), (6, 6)]
    assert [len(star_points(size)) for size in (5, 6, 8, 13, 19)] == [1, 0, 4, 9, 9]
