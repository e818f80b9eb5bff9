"""Parses chess positions in FEN (Forsyth-Edwards notation)."""

import re

import jax.numpy as jnp
import numpy as np

from alphagat.errors import UserError
from alphagat.games import chess_rules
from alphagat.games.chess import COLUMNS, LETTERS, MAX_LEGAL_ACTIONS
from alphagat.games.chess_moves import KING, PAWN, ROOK
from alphagat.games.chess_rules import ChessState
from alphagat.wording import counted

SIZE = 8
SIDES = "wb"
RIGHTS = "QKqk"  # castling rights: White's queenside and kingside, then Black's
START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
# Squares of king and rook for each castling right, as (row, column) from the top left.
HOMES = {"Q": ((7, 4), (7, 0)), "K": ((7, 4), (7, 7)), "q": ((0, 4), (0, 0)), "k": ((0, 4), (0, 7))}


def state_from_fen(fen: str) -> ChessState:
    """Returns the state of a FEN with six or four fields.

    A FEN has no history: the state has no earlier positions for counting repetitions, and no last move, which the
    network observes.

    Raises:
      UserError: the FEN is malformed or the position is impossible.
    """
    fields = fen.split()
    if len(fields) not in (4, 6):
        raise UserError(f"FEN {fen!r} has {counted(len(fields), 'field')}; write all 6, or the first 4")
    board, side = _board(fen, fields[0]), fields[1]
    if side not in SIDES or len(side) != 1:
        raise UserError(f"FEN {fen!r}: {side!r} is not a side; write w or b")
    rights = _rights(fen, fields[2], board)
    player, column = SIDES.index(side), _en_passant(fen, fields[3], side, board)
    _check_pieces(fen, board)
    reversible, number = (_number(fen, field) for field in fields[4:] or ("0", "1"))
    mine, theirs = (board, rights), (-board[::-1], np.roll(rights, 2))
    views = (mine, theirs) if player == 0 else (theirs, mine)
    _, is_open = chess_rules.legal_planes(chess_rules.start(*views[1], 1 - player))
    if is_open:
        raise UserError(f"FEN {fen!r}: the king of the side that is not to move is in check")
    state = chess_rules.start(*views[0], player, column)
    if (num_legal := int(state.legal_action_mask.sum())) > MAX_LEGAL_ACTIONS[SIZE]:
        raise UserError(f"FEN {fen!r}: {num_legal} legal moves; no game reaches more than {MAX_LEGAL_ACTIONS[SIZE]}")
    num_moves = min(2 * max(number - 1, 0) + player, chess_rules.MAX_PLIES[SIZE] // 2)  # leaves room for a search
    reversible = min(reversible, chess_rules.MAX_REVERSIBLE - 1)
    first = chess_rules.without_history(state)
    return first.replace(reversible=jnp.int8(reversible), num_moves=jnp.int16(num_moves))


def _board(fen: str, field: str) -> np.ndarray:
    """Returns the pieces, `[8, 8]` int8, White's positive, the eighth rank first."""
    rows = [re.sub("[1-8]", lambda digit: "." * int(digit[0]), row) for row in field.split("/")]
    if len(rows) != SIZE or not all(re.fullmatch("[.pnbrqkPNBRQK]{8}", row) for row in rows):
        raise UserError(f"FEN {fen!r}: its first field must describe 8 rows of 8 squares, such as 8/8/8/8/8/8/8/8")
    signs = [[LETTERS.index(piece.upper()) * (1 if piece.isupper() else -1) for piece in row] for row in rows]
    return np.array(signs, np.int8)


def _check_pieces(fen: str, board: np.ndarray) -> None:
    for colour in (1, -1):
        if (board == colour * KING).sum() != 1:
            raise UserError(f"FEN {fen!r}: each side needs one king")
    if (abs(board[[0, -1]]) == PAWN).any():
        raise UserError(f"FEN {fen!r}: there is a pawn on the first or last rank")


def _rights(fen: str, field: str, board: np.ndarray) -> np.ndarray:
    """Returns the castling rights, `[4]` bool in the order of `RIGHTS`."""
    if field != "-" and not re.fullmatch("K?Q?k?q?", field):
        raise UserError(f"FEN {fen!r}: {field!r} is not a set of castling rights; write some of KQkq, or -")
    for right in field.replace("-", ""):
        colour = 1 if right.isupper() else -1
        king, rook = HOMES[right]
        if (board[king], board[rook]) != (colour * KING, colour * ROOK):
            raise UserError(f"FEN {fen!r}: castling {right} needs king and rook on their initial squares")
    return np.array([right in field for right in RIGHTS])


def _en_passant(fen: str, field: str, side: str, board: np.ndarray) -> int:
    """Returns the column of the pawn that just moved two squares, or -1."""
    if field == "-":
        return -1
    row, step, pawn = (3, -1, -PAWN) if side == "w" else (4, 1, PAWN)  # of the pawn that moved two squares
    column = COLUMNS.find(field[:1])
    is_square = re.fullmatch("[a-h][36]", field) and field[1] == ("6" if side == "w" else "3")
    if not is_square or board[row, column] != pawn or board[row + step, column] or board[row + 2 * step, column]:
        raise UserError(f"FEN {fen!r}: no pawn has just jumped over {field!r}")
    return column


def _number(fen: str, field: str) -> int:
    if not re.fullmatch("[0-9]{1,4}", field):
        raise UserError(f"FEN {fen!r}: {field!r} is not a number of moves; write 0 to 9999")
    return int(field)
