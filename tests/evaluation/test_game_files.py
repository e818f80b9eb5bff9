"""Files of games: what is written reads back, and other programs read it."""

import io
import re

import chess.pgn
import jax
import numpy as np
import pytest
import sgfmill.boards
import sgfmill.sgf

from alphagat.errors import UserError
from alphagat.evaluation.arena import play_match
from alphagat.evaluation.engines.base import FORFEITS
from alphagat.evaluation.game_files import GameRecord, read_games, records_of, to_text
from alphagat.evaluation.game_replay import play_again
from alphagat.evaluation.openings import distinct_openings
from alphagat.evaluation.players import make_opponent
from alphagat.games import GAMES, make_game
from alphagat.games.states import first_state, moves_determine_positions
from tests.evaluation.toy import PileGame, RandomPileGame

KEY = jax.random.key(3)


def random_match(name: str, num_openings: int):
    game = make_game(name)
    random, openings = make_opponent(game, "random"), distinct_openings(game, num_openings, seed=0)
    return game, openings, play_match(game, random, random, openings, KEY)


def last_state(game, moves):
    """Plays moves by name."""
    step, state = jax.jit(game.step), first_state(game)
    for move in moves:
        assert not state.terminated
        names = {game.action_name(state, action): action for action in np.flatnonzero(state.legal_action_mask)}
        state = step(state, np.int32(names[move]), KEY)
    return state


@pytest.mark.parametrize(
    "name", ["go:5", "go:9:6.5", "hex:3:swap", "othello:4", "connect_four", "breakthrough:5", "gomoku:5", "chess"]
)
def test_match_round_trips_through_file(name):
    game, openings, result = random_match(name, 2)
    records = records_of(game, ("A \\ [x]", "B: y"), openings, result)
    assert [record.names for record in records] == [("A \\ [x]", "B: y"), ("B: y", "A \\ [x]")] * 2
    assert read_games("".join(to_text(record) for record in records)) == records
    for number, record in enumerate(records):
        row, colour = divmod(number, 2)
        assert len(record.moves) == openings.actions.shape[1] + result.plies[colour, row]
        state = last_state(game, record.moves)
        outcome = int(state.rewards[0])
        assert state.terminated or outcome == 0
        assert record.outcome == outcome == result.outcomes[colour, row] * (1, -1)[colour]


def test_passes_of_othello_may_be_omitted_or_empty():
    game, openings, result = random_match("othello:4", 4)
    records = records_of(game, ("A", "B"), openings, result)
    assert any("pass" in record.moves for record in records)
    text = "".join(map(to_text, records))
    assert read_games(re.sub(r";[BW]\[pass\]", "", text)) == records
    assert read_games(text.replace("[pass]", "[]")) == records
    wrong = read_games("(;GN[othello:4];B[a2];B[a1])")
    with pytest.raises(UserError, match="move 2: 'pass' is not legal on othello:4"):
        play_again(game, wrong, ["game 1"])


def test_go_file_is_read_identically_by_sgfmill():
    game, openings, result = random_match("go:9", 1)
    record = records_of(game, ("A", "B"), openings, result)[0]
    theirs = sgfmill.sgf.Sgf_game.from_string(to_text(record))
    assert (theirs.get_size(), theirs.get_komi(), theirs.get_winner()) == (9, 7.5, "b" if record.outcome > 0 else "w")
    board = sgfmill.boards.Board(9)
    for node in theirs.get_main_sequence()[1:]:
        colour, point = node.get_move()
        if point is not None:
            board.play(*point, colour)
    state = last_state(game, record.moves)
    ours = {cell: " bw"[owner] for cell, owner in zip(game.action_names, np.sign(state.chains).tolist()) if owner}
    columns = "abcdefghj"
    assert ours == {f"{columns[column]}{row + 1}": colour for colour, (row, column) in board.list_occupied_points()}


def test_chess_file_is_read_identically_by_python_chess():
    game, openings, result = random_match("chess", 1)
    record = records_of(game, ("A", "B"), openings, result)[1]
    theirs = chess.pgn.read_game(io.StringIO(to_text(record)))
    assert theirs is not None
    assert not theirs.errors
    assert (theirs.headers["White"], theirs.headers["Black"]) == ("B", "A")
    assert [move.uci() for move in theirs.mainline_moves()] == list(record.moves)


def test_forfeit_reason_is_recorded():
    records = [GameRecord("hex:3", ("A", "B"), ("a1", "b2"), (0, 1), -1, reason) for reason in FORFEITS]
    assert "RE[W+T]" in to_text(records[FORFEITS.index("timed out")])
    assert read_games("".join(map(to_text, records))) == records
    pgn = to_text(GameRecord("chess", ("A", "B"), ("e2e4",), (0,), 1, "died"))
    assert '[Termination "died"]' in pgn
    assert read_games(pgn)[0].forfeit == "died"


@pytest.mark.parametrize(
    ("end", "is_forfeit"),
    [
        ("Time forfeit", True),
        ("Rules infraction", True),
        ("illegal move", True),
        ("abandoned", True),
        ("B won on time", True),
        ("A won - game abandoned", True),
        ("A won by checkmate", False),
        ("A won by resignation", False),
        ("adjudication", False),
        ("?", False),
    ],
)
def test_only_known_terminations_are_forfeits(end, is_forfeit):
    (record,) = read_games(f'[Termination "{end}"]\n[Result "1-0"]\n\n1. e4 1-0\n')
    assert record.forfeit == (end if is_forfeit else "")


def test_a_name_or_reason_of_two_lines_does_not_split_a_game():
    text = to_text(GameRecord("chess", ("A\n\n1. e4", "B\rC"), ("e2e4",), (0,), 1))
    assert [record.names for record in read_games(text)] == [("A  1. e4", "B C")]
    (record,) = read_games(to_text(GameRecord("chess", ("A", "B"), ("e2e4",), (0,), 1, 'A "\n1. e4 on time')))
    assert (record.moves, record.forfeit) == (("e2e4",), 'A " 1. e4 on time')


def test_missing_result_is_not_a_draw():
    for board, move in (("hex:3", "a1"), ("chess", "e2e4")):
        records = [GameRecord(board, ("A", "B"), (move,), (0,), outcome) for outcome in (None, 0, 1, -1)]
        assert read_games("".join(to_text(record) for record in records)) == records


def test_reads_files_of_other_programs():
    """One that names no board is of the board that is asked for; a comment is no forfeit."""
    (record,) = read_games("(;FF[4]GM[1]SZ[5]GN[Round 3]GC[A fine game]RE[W+3.5];B[ae];W[tt])", "go:5")
    assert record == GameRecord("go:5", ("", ""), ("a1", "pass"), (0, 1), -1)
    (record,) = read_games("(;GM[1]SZ[5]KM[7.50]RE[B+Resign];B[zz])", "go:5")
    assert (record.moves, record.outcome, record.forfeit) == (("zz",), 1, "resigned")
    (record,) = read_games("(;GM[1]SZ[5]RE[B+F];B[aa])", "go:5")
    assert (record.outcome, record.forfeit) == (1, "forfeit")
    drawn = read_games("".join(f"(;GM[1]SZ[5]RE[{result}];B[aa])" for result in ("0", "Draw", "jigo")), "go:5")
    assert [record.outcome for record in drawn] == [0, 0, 0]
    (record,) = read_games("(;GN[hex:3]RE[Void];B[a1])", "go:5")  # it says what it is
    assert (record.board, record.outcome) == ("hex:3", None)
    pgn = '[Termination "Normal"]\n[Result "1/2-1/2"]\n\n1. e4 1/2-1/2\n'
    assert read_games(pgn) == [GameRecord("chess", ("?", "?"), ("e2e4",), (0,), 0)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(;GM[4]SZ[30];B[aa])", "game 1: it is on another board than go:5: GM is '4', SZ is '30'; name its board"),
        ("(;GM[1]SZ[9]KM[0];B[aa])", "game 1: its komi .* '0', and that of go:9 is 7.5; remove it"),
        ("(;GM[1]GN[go:9]SZ[5];B[aa])", "it is on another board than go:9: GM is '1', SZ is '5'; name its board in GN"),
        ("(;GM[11]GN[go:5]SZ[5];B[aa])", "it is on another board than go:5: GM is '11', SZ is '5'"),
        ("(;GN[go:5];B[aa])(;AB[aa];W[bb])", "game 2: it starts from placed stones"),
        ("(;SZ[5];B[aa];AE[aa];W[bb])", "game 1: it starts from placed stones or changes some later"),
        (
            "(;SZ[5]KM[0.5];B[aa])",
            r"its komi \(KM\) is '0.5', and that of go:5 is 7.5; name its board, GN\[go:5:0.5\],",
        ),
        ("(;GN[go:5]KM[6.50];B[aa])", r"name its board, GN\[go:5:6.5\], or remove it"),
        ("(;SZ[5]KM[0];B[aa])", "its komi .* 7.5; remove it"),
        ("(;SZ[5]KM[?];B[aa])", "its komi .* 7.5; remove it"),
        ('[FEN "8/8/8/8/8/8/k7/7K w - - 0 1"]\n[SetUp "1"]\n\n1. Kg1 *\n', "game 1: it starts from a FEN"),
    ],
)
def test_game_of_another_board_is_rejected(text, expected):
    with pytest.raises(UserError, match=expected):
        read_games(text, "go:5")


@pytest.mark.parametrize(
    ("root", "asked", "board"),
    [
        ("GM[1]SZ[19]KM[6.5]", "hex:3", "go:19:6.5"),
        ("GM[1]SZ[9]KM[7.5]", "", "go:9"),
        ("GM[1]SZ[9]", "go:5", "go:9"),
        ("GM[1]SZ[9]KM[6.5]", "go:9", "go:9:6.5"),
        ("GM[1]SZ[9]", "go:9:5.5", "go:9:5.5"),
        ("GM[11]SZ[5]", "go:5", "hex:5"),
        ("GM[11]SZ[5]", "hex:5:swap", "hex:5:swap"),
    ],
)
def test_a_root_describes_its_board_where_it_names_none(root, asked, board):
    move = "aa" if board.startswith("go") else "a1"
    (record,) = read_games(f"(;{root};B[{move}])", asked)
    assert record.board == board


def test_game_without_board_is_rejected():
    with pytest.raises(UserError, match="it names no board"):
        read_games("(;B[aa])")


def test_a_damaged_game_is_named():
    with pytest.raises(UserError, match=r"^game 2: it is damaged \(unexpected end of SGF data\); remove it$"):
        read_games("(;B[aa])(;B[aa", "go:5")


@pytest.mark.parametrize("text", ["", "hello", "1 game"])
def test_unparsable_text_is_rejected(text):
    with pytest.raises(UserError, match="neither PGN nor SGF"):
        read_games(text)


def test_only_moves_from_a_fixed_position_make_a_file():
    games = [PileGame(9), RandomPileGame(10), make_game("tsp:4"), make_game("2048:2"), make_game("hex:3")]
    assert [moves_determine_positions(game) for game in games] == [True, False, False, False, True]


def test_names_of_moves_with_brackets_read_back(monkeypatch: pytest.MonkeyPatch):
    names = ("take [1]", "take \\ 2", "take: 3")
    game = PileGame(6)
    game.name, game.action_names = "pile:6", names
    monkeypatch.setattr(PileGame, "topology", make_game("tic_tac_toe").topology, raising=False)
    monkeypatch.setitem(GAMES, "pile", lambda name: game)
    record = GameRecord("pile:6", ("A", "B"), (names[0], names[1], names[2]), (0, 1, 1), -1)
    assert read_games(to_text(record)) == [record]
