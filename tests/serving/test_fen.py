"""Tests positions from FEN against python-chess: legal moves, player to move, and continuations."""

import contextlib
import functools

import chess
import jax
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.evaluation.live_game import LiveGame
from alphagat.games import make_game
from alphagat.serving.protocols.fen import START, state_from_fen
from tests.fuzz import text_mutants

CHESS = make_game("chess")
KNOWN = (
    START,
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R b Kq - 5 12",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 0 1",
    "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
    "rnbqkbnr/pppp1ppp/8/8/3PpP2/8/PPP1P1PP/RNBQKBNR b KQkq d3 0 3",
    "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1",
)


@functools.cache
def from_fen(fen):
    return jax.tree.map(np.asarray, state_from_fen(fen))


@pytest.mark.parametrize("fen", KNOWN)
def test_legal_moves_match_python_chess(fen):
    game, board = LiveGame(CHESS, from_fen(fen)), chess.Board(fen)
    assert set(game.position.legal_actions()) == {move.uci() for move in board.legal_moves}
    assert game.position.player == int(board.turn == chess.BLACK)
    assert game.is_over == board.is_game_over()
    view = CHESS.whites_view(game.position.state)
    for row, column in np.ndindex(8, 8):
        piece = board.piece_at(chess.square(column, 7 - row))
        assert view[row, column] == (0 if piece is None else piece.piece_type * (1 if piece.color else -1))


BACK_RANKS = (  # the last one and the first one
    ("4k3", "4K3"),
    ("4k3", "4K1N1"),
    ("4k1b1", "4K3"),
    ("kb1b4", "K7"),
    ("4kb2", "2B1K3"),
    ("4k1b1", "2B1K3"),
    ("4kbb1", "4K3"),
    ("4k1nn", "4K3"),
    ("4k1n1", "4K1N1"),
    ("4k1n1", "4KB2"),
    ("r3k3", "4K3"),
)


@pytest.mark.parametrize(("last", "first"), BACK_RANKS)
def test_insufficient_material_ends_the_game_after_the_next_move(last, first):
    fen = f"{last}/8/8/8/8/8/8/{first} b - - 0 1"
    game, board = LiveGame(CHESS, from_fen(fen)), chess.Board(fen)
    assert set(game.position.legal_actions()) == {move.uci() for move in board.legal_moves}
    game.play(next(move.uci() for move in board.legal_moves))
    assert game.is_over == board.is_insufficient_material()
    assert bool(game.position.legal_actions()) != game.is_over


def test_a_parsed_state_equals_the_played_one():
    """A state parsed from a FEN equals the state reached by playing, including castling rights."""
    random = np.random.default_rng(0)
    for _ in range(3):
        board, played = chess.Board(), LiveGame(CHESS)
        for ply in range(60):
            move = str(random.choice([move.uci() for move in board.legal_moves]))
            board.push_uci(move)
            played.play(move)
            if played.is_over:
                break
            if ply % 6 == 0:
                state = state_from_fen(board.fen(en_passant="fen"))
                expected = played.position.state
                for name in ("pieces", "castling", "en_passant", "reversible", "num_moves", "current_player", "planes"):
                    np.testing.assert_array_equal(getattr(state, name), getattr(expected, name), err_msg=name)
                np.testing.assert_array_equal(state.hashes[0], expected.hashes[0])


MISTAKES = {
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -  0": "has 5 fields",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP w KQkq - 0 1": "8 rows of 8 squares",
    "rnbqkbnr/pppppppp/9/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1": "8 rows of 8 squares",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR x KQkq - 0 1": "'x' is not a side",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w QK - 0 1": "not a set of castling rights",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBN1 w KQkq - 0 1": "castling K needs king and rook",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq e6 0 1": "no pawn has just jumped over 'e6'",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - x 1": "not a number of moves",
    "rnbq1bnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQ - 0 1": "each side needs one king",
    "P6k/8/8/8/8/8/8/K7 w - - 0 1": "a pawn on the first or last rank",
    "7k/8/8/8/8/8/8/K6R w - - 0 1": "not to move is in check",
    "Q6Q/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1": "no game reaches more than 218",
    "7k/7R/8/8/8/8/8/K7 b - - 0 1": "",
}


@pytest.mark.parametrize(("fen", "message"), MISTAKES.items())
def test_invalid_positions_raise(fen, message):
    if not message:  # legal: the player to move is in check
        assert state_from_fen(fen).legal_action_mask.any()
        return
    with pytest.raises(UserError, match=message):
        state_from_fen(fen)


def test_damaged_positions_raise_only_user_errors(rounds: int):
    """A damaged position that is accepted has the legal moves of python-chess, if that accepts it too."""
    accepted = 0
    for fen in text_mutants(KNOWN, 100 * rounds):
        with contextlib.suppress(UserError):
            game = LiveGame(CHESS, from_fen(fen))
            accepted += 1
            with contextlib.suppress(ValueError):
                board = chess.Board(fen)
                if board.is_valid():
                    assert set(game.position.legal_actions()) == {move.uci() for move in board.legal_moves}
    assert 0 < accepted < 100 * rounds
