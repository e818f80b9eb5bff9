"""Files of games are read within limits, and damaged ones are refused by a UserError."""

import contextlib

import chess
import jax
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.evaluation import game_replay
from alphagat.evaluation.game_files import GameRecord, read_file, read_games, to_text
from alphagat.evaluation.game_formats import limits
from alphagat.games import make_game
from tests.fuzz import text_mutants

SGF = [
    to_text(GameRecord("tic_tac_toe", ("A [x]", "B \\"), ("a1", "b1", "a2", "b2", "a3"), (0, 1, 0, 1, 0), 1)),
    to_text(GameRecord("go:5", ("A", "B"), ("a1", "pass", "b2"), (0, 1, 0), -1, "timed out")),
    "(;FF[4]GM[1]SZ[5]GN[Round 3]GC[ü]RE[W+3.5];B[ae](;W[tt];B[])(;W[bb]C[a\\]b]))\n",
]
PGN = [
    to_text(GameRecord("chess", ("A", "B"), ("e2e4", "e7e5", "g1f3"), (0, 1, 0), 1, "died")),
    '[White "A"]\n[Result "1/2-1/2"]\n\n1. e4 {a {comment} e5 $1 (1... c5 2. Nf3 (2. c3)) 2. Nf3 1/2-1/2\n\n',
    '[Variant "Standard"]\n\n1. d4 ; rest\n% escape\nd5 2. c4 O-O *\n',
]


@pytest.mark.parametrize(("valid", "board"), [(SGF, "go:5"), (PGN, "")], ids=["SGF", "PGN"])
def test_damaged_files_raise_only_user_errors(valid, board, tmp_path, rounds: int):
    for text in text_mutants(valid, 700 * rounds):
        for read in (lambda text=text: read_games(text, board), lambda text=text: read_games(text[1:], board)):
            with contextlib.suppress(UserError):
                assert all(isinstance(record, GameRecord) for record in read())


def test_damaged_moves_raise_only_user_errors(rounds: int):
    """One compiled program replays all games."""
    games, size = {}, 2
    for text in text_mutants(SGF[:1], 300 * rounds):
        with contextlib.suppress(UserError):
            for record in read_games(text, "tic_tac_toe"):
                if record.board == "tic_tac_toe" and record.moves:
                    games[text] = [record] * size
    assert len(games) > 50 * rounds
    accepted = 0
    for records in games.values():
        with contextlib.suppress(UserError):
            played = game_replay.play_again(make_game("tic_tac_toe"), records, ["x"] * size)
            assert len(played.actions) == size * len(records[0].moves)
            accepted += 1
    assert 0 < accepted < len(games)


def test_unknown_tags_of_pgn_have_the_form_of_the_standard():
    lines = PGN[0].splitlines()
    assert lines[1:4] == ['[Site "?"]', '[Date "????.??.??"]', '[Round "?"]']


@pytest.mark.parametrize("variant", ["Atomic", "Chess960", "fischerandom", "Crazyhouse", "nonsense", "²"])
def test_variants_of_chess_are_refused_by_name(variant: str):
    with pytest.raises(UserError, match=f"game 1: its variant is '{variant}', not chess; remove it"):
        read_games(f'[Variant "{variant}"]\n\n1. e4 *\n')


@pytest.mark.parametrize("variant", ["Standard", "chess", "From Position"])
def test_chess_by_another_name_is_read(variant: str):
    assert read_games(f'[Variant "{variant}"]\n\n1. e4 *\n')[0].moves == ("e2e4",)


def test_variations_do_not_matter():
    pgn = '[White "A"]\n\n1. e4 (1. d4 (1. c4 Kxh9) d5) (1. a3) e5 1-0\n'
    assert read_games(pgn) == [GameRecord("chess", ("A", "?"), ("e2e4", "e7e5"), (0, 1), 1)]
    sgf = "(;GN[hex:3];B[a1](;W[b1](;B[c1])(;B[c2]))(;W[b2]))"
    assert read_games(sgf)[0].moves == ("a1", "b1", "c1")


@pytest.mark.parametrize(
    "text",
    [
        "1. e4 e5 1-0",
        "% escaped\n; [a comment\n\n1.e4 e5 1-0\n",
        '% escaped\n[Result "1-0"]\n\n1. e4 e5 *\n',
        '[Result "?"]\n\n1. e4 {;)}e5 1-0\n',
        f'[SetUp "1"]\n[FEN "{chess.STARTING_FEN}"]\n\n1. e4 e5 1-0\n',
    ],
    ids=["no tags", "comments without tags", "an escape", "a result only after the moves", "the usual FEN"],
)
def test_unusual_pgn_is_read(text: str):
    assert read_games(text) == [GameRecord("chess", ("?", "?"), ("e2e4", "e7e5"), (0, 1), 1)]


@pytest.mark.parametrize("end", ["resigned", "Resigned"])
def test_ends_of_pgn_are_known_in_any_case(end: str):
    (record,) = read_games(f'[Termination "{end}"]\n[Result "1-0"]\n\n1. e4 e5 1-0\n')
    assert record.forfeit == "resigned"


def test_quotes_in_tags_are_escaped():
    record = GameRecord("chess", ('uci:sh -c "a \\ b"', '"'), ("e2e4",), (0,), 1)
    assert '[White "uci:sh -c \\"a \\\\ b\\""]\n[Black "\\""]\n' in to_text(record)
    assert read_games(to_text(record)) == [record]


def test_line_ends_and_byte_order_marks_do_not_matter(tmp_path):
    for name, text in (("a.sgf", SGF[0]), ("a.pgn", PGN[0])):
        file = tmp_path / name
        file.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
        assert read_file(file) == read_games(text)


EXCEEDED = {
    "games": ("MAX_GAMES", 1, "(;GN[hex:3])" * 2, "it has more than 1 games, the limit of game files; split the file"),
    "games, PGN": ("MAX_GAMES", 1, PGN[0] * 2, "it has more than 1 games"),
    "nodes": ("MAX_NODES", 2, "(;GN[hex:3];B[a1];W[b1])", "it has more than 2 nodes"),
    "moves, PGN": ("MAX_NODES", 3, PGN[0] * 2, "it has more than 3 moves"),
    "moves of a game": (
        "MAX_MOVES",
        2,
        "(;GN[hex:3];B[a1];W[b1])",
        "game 1: it has more than 2 nodes in its main line",
    ),
    "moves of a game, PGN": ("MAX_MOVES", 2, PGN[0], "game 1: it has more than 2 moves"),
    "line, PGN": ("MAX_LINE", 20, PGN[0], "it has more than 20 characters in line 8, the limit of game files; wrap"),
    "depth": ("MAX_DEPTH", 1, "(;GN[hex:3](;B[a1](;W[b1])))", "game 1: it has more than 1 levels of nested variations"),
    "boards": ("MAX_BOARDS", 1, "(;GN[hex:3])(;GN[hex:4])", "it has more than 1 boards"),
    "bytes": ("MAX_BYTES", 10, "(;GN[hex:3])", "it has more than 10 bytes"),
}


@pytest.mark.parametrize(("name", "limit", "text", "expected"), EXCEEDED.values(), ids=EXCEEDED.keys())
def test_limits(name, limit, text, expected, tmp_path, monkeypatch):
    (tmp_path / "games").write_text(text)
    assert read_file(tmp_path / "games")
    monkeypatch.setattr(limits, name, limit)
    with pytest.raises(UserError) as caught:
        read_file(tmp_path / "games")
    assert str(caught.value).startswith(expected)
    assert "\n" not in str(caught.value)


def test_deep_files_are_refused():
    with pytest.raises(UserError, match="more than 1,000 levels of nested variations"):
        read_games("(;GN[hex:3]" * 100_000 + ")" * 100_000)
    assert read_games('[White "A"]\n\n1. e4 ' + "(1. d4\n" * 50_000 + ")" * 50_000 + " e5 *\n")[0].moves == (
        "e2e4",
        "e7e5",
    )


@pytest.mark.parametrize("name", ["hex:" + "9" * 5000, "hex:²", "hex:-3", "x" * 10**6, "go:5:nan", "mnk:" + "3x" * 999])
def test_board_names_of_files_are_bounded(name: str):
    with pytest.raises(UserError) as caught:
        read_games(f"(;GN[{name}])")
    assert str(caught.value).startswith("game 1: it names no board (GN is '")
    assert len(str(caught.value)) < 200


def test_legal_moves_are_read_on_the_host(monkeypatch):
    """Reading a row of a JAX array takes as long as replaying many moves."""
    records = read_games("(;GN[go:5];B[aa];W[bb];B[cc];W[dd];B[ee])" * 8)
    rows = []
    find = game_replay._Names.find

    def listen(self, states, row, player, legal, name):
        rows.append(legal)
        return find(self, states, row, player, legal, name)

    monkeypatch.setattr(game_replay._Names, "find", listen)
    game_replay.play_again(make_game("go:5"), records, ["x"] * 8)
    assert len(rows) == 40
    assert all(isinstance(row, np.ndarray) and not isinstance(row, jax.Array) for row in rows)


def test_letter_pairs_of_gomoku_are_read():
    """Column, then row from the top; what lies outside of the board stays as it is, to be rejected as illegal."""
    (record,) = read_games("(;GM[4]SZ[15];B[hh];W[hi];B[h9];W[oa];B[ap];W[pa];B[zz])", "gomoku:15")
    assert record.moves == ("h8", "h7", "h9", "o15", "ap", "pa", "zz")
    assert "B[h8]" in to_text(record)
    assert read_games("(;GN[mnk:5x6x4];B[fa];W[ae];B[af])")[0].moves == ("f5", "a1", "af")
    assert read_games("(;GN[go:5];B[ee];W[af];B[fa])")[0].moves == ("e1", "af", "fa")


@pytest.mark.parametrize("change", [str, str.upper, str.title])
def test_moves_of_other_programs_on_hex_and_othello_are_read(change):
    text = f"(;GM[11]SZ[3];B[{change('a2')}];W[{change('swap-pieces')}])"
    assert read_games(text, "hex:3:swap")[0].moves == ("a2", "swap")
    text = f"(;GM[2]SZ[8];B[{change('d3')}];W[{change('pass')}])"
    assert read_games(text, "othello:8")[0].moves == ("d3", "pass")


@pytest.mark.parametrize(
    ("game", "names"), [("(;GN[hex:3]PB[A];B[a1])\n", ("A", "")), ('[White "A"]\n\n1. e4 *\n\n', ("A", "?"))]
)
def test_no_more_games_are_read_than_asked_for(game, names):
    damaged = "(;GN[hex:3];B[a" if game[0] == "(" else "1. e5 *\n"
    for text in (game * 2, game * 3, game * 2 + damaged):
        assert [record.names for record in read_games(text, most=2)] == [names] * 2
    with pytest.raises(UserError, match="game 3: "):
        read_games(game * 2 + damaged, most=3)


def test_the_first_games_have_a_limit_of_their_own(monkeypatch):
    monkeypatch.setattr(limits, "MAX_FIRST_TOKENS", 20)
    game = "(;GN[hex:3];B[a1])"  # of 8 tokens
    assert len(read_games(game * 3, most=2)) == 2
    with pytest.raises(UserError, match="it has more than 20 tokens in its first 3 games, the limit of game files"):
        read_games(game * 3, most=3)
    assert len(read_games(game * 3)) == 3
