"""Chess, and Gardner's chess on 5 x 5 squares, without double pawn steps and castling.

The rules are those of Pgx 2.6.0, checked move by move against it and python-chess. The game is drawn without
a claim on threefold repetition, after 50 moves of each player without capture or pawn move, and on insufficient
material: bare kings, one additional knight or bishop, or only bishops on squares of one colour. Differences:

- FIDE and python-chess require a claim; they end a game automatically on fivefold repetition or after 75 moves.
- A double pawn step distinguishes positions only if en passant is legal, as in FIDE's rules; in Pgx it always does, so
  Pgx may count fewer repetitions.
- Chess is a draw after 512 plies, Gardner's chess after 256.

Actions, squares and `action_names` are from the perspective of the player to move: Black's rows are reversed, so that
`e2e4` is Black's e7e5. `action_name` and drawings use ordinary coordinates.
"""

from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.errors import UserError
from alphagat.games import base, chess_graph, chess_moves, chess_rules, places, svg
from alphagat.games.chess_moves import BISHOP, KING, KNIGHT, PAWN, QUEEN, ROOK
from alphagat.games.chess_rules import ChessState
from alphagat.games.drawings.pieces import FILLS, draw_pieces
from alphagat.games.rays import grid_symmetries
from alphagat.games.square_sets import Squares, only, stack
from alphagat.games.symmetries import symmetries_of

LETTERS = ".PNBRQK"
COLUMNS = "abcdefgh"
# By size. 8: the position of Petrović (1964), which a proof by computer (2024) showed to be the extreme among reachable
# ones. 5: a bound; 16 moves for each of six queens and 8 for each other piece.
MAX_LEGAL_ACTIONS = {5: 128, 8: 218}
BACK_ROWS = {5: (ROOK, KNIGHT, BISHOP, QUEEN, KING), 8: (ROOK, KNIGHT, BISHOP, QUEEN, KING, BISHOP, KNIGHT, ROOK)}


class ChessGame(base.Game):
    """The rules, topology and features of one board.

    Features per node: own pawn, knight, bishop, rook, queen and king; the opponent's six; en passant target; rook with
    castling rights; origin of the opponent's last move; its destination; attacked or defended by the player to move;
    by the opponent; rows to the last row / 4 (at most 1); rows from the first row / 4 (at most 1); columns to the
    nearer edge / 3; the position is a repetition; plies without capture or pawn move / 100; plies played / maximum
    length of a game; the player to move is White.
    """

    num_features = 25
    history_features = (14, 15, 22)  # both squares of the last move, and plies without capture or pawn move
    goal = "Checkmate the other king."
    player_colours = (("white", FILLS[0]), ("black", FILLS[1]))

    def __init__(self, name: str, size: int):
        """Makes the board of 8 x 8 or 5 x 5 squares. Raises UserError for other sizes."""
        if size not in BACK_ROWS:
            raise UserError(f"board {name}: size {size} is not possible; use {' or '.join(map(str, BACK_ROWS))}")
        self.name, self.size, self.has_rights = name, size, size == 8
        self.max_plies = chess_rules.MAX_PLIES[size]
        self.topology = chess_graph.make_topology(size)
        reflections = grid_symmetries(size, size)[: 1 if self.has_rights else 2]  # castling tells left from right
        self.symmetries = symmetries_of(self.topology, reflections)
        self._actions = chess_graph.make_actions(size)
        self.square_names = tuple(f"{COLUMNS[column]}{size - row}" for row, column in np.ndindex(size, size))
        names, actions = self.square_names, self._actions
        self.action_names = tuple(
            f"{names[here]}{names[there]}{' rbn'[kind].strip()}"
            for here, there, kind in zip(actions.senders, actions.receivers, actions.kinds)
        )

    @property
    def max_legal_actions(self) -> int:
        return MAX_LEGAL_ACTIONS[self.size]

    def init(self, key: jax.Array) -> ChessState:
        del key
        board = np.zeros((self.size, self.size), np.int8)
        board[-1], board[-2] = BACK_ROWS[self.size], PAWN
        return chess_rules.start(board - board[::-1], np.ones(4, bool) if self.has_rights else None)

    def step(self, state: ChessState, action: jax.Array, key: jax.Array) -> ChessState:
        del key
        return chess_rules.step(state, action)

    def observe(self, state: ChessState) -> jax.Array:
        num_squares, position = self.size**2, state.position()
        sets = [
            Squares(*(jnp.concatenate(words) for words in zip(*(position.kinds & mask for mask in _sides(position))))),
            stack([*self._special_squares(state), *chess_moves.attacks(position, self.size)]),
        ]
        shared = [
            (state.repetitions > 0).astype(jnp.float32),
            state.reversible.astype(jnp.float32) / chess_rules.MAX_REVERSIBLE,
            state.num_moves.astype(jnp.float32) / self.max_plies,
            (state.current_player == 0).astype(jnp.float32),
        ]
        nodes = [
            jnp.concatenate([squares.mask(num_squares) for squares in sets]).T.astype(jnp.float32),
            jnp.asarray(_place_features(self.size)),
            jnp.broadcast_to(jnp.stack(shared)[None], (num_squares, len(shared))),
        ]
        return jnp.concatenate(nodes, axis=-1)

    def action_name(self, state: ChessState, action: int) -> str:
        """Returns the move in UCI notation, e.g. `e7e8q`, in ordinary coordinates (from White's side)."""
        return self.names_of(state, [action])[0]

    def names_of(self, state: ChessState, actions: Iterable[int]) -> list[str]:
        board, player = np.asarray(_board_of(state)), int(state.current_player)
        return [self.move_name(board, player, int(action)) for action in actions]

    def move_name(self, board: np.ndarray, player: int, action: int) -> str:
        """Returns `action_name` for a player and the `[N * N]` board from this player's view."""
        here, there = int(self._actions.senders[action]), int(self._actions.receivers[action])
        promotes = board[here] == PAWN and there < self.size
        suffix = "qrbn"[self._actions.kinds[action]] if promotes else ""
        if player:
            here, there = chess_rules.turned(here, self.size), chess_rules.turned(there, self.size)
        return self.square_names[here] + self.square_names[there] + suffix

    def render(self, state: ChessState) -> str:
        lines = [
            f"{self.size - row} {' '.join(LETTERS[piece] if piece >= 0 else LETTERS[-piece].lower() for piece in line)}"
            for row, line in enumerate(self.whites_view(state))
        ]
        return "\n".join((*lines, f"  {' '.join(COLUMNS[: self.size])}", self._status(state)))

    def render_svg(self, state: ChessState) -> str:
        marked = np.zeros(self.size**2, bool)
        marked[[int(square) for square in state.last_move if square >= 0]] = True
        marked = marked.reshape(self.size, self.size)
        marked = marked[::-1] if int(state.current_player) else marked
        names = tuple(str(self.size - row) for row in range(self.size))
        return draw_pieces(self.whites_view(state), marked, names, svg.column_letters(self.size))

    def node_places(self, state: ChessState) -> np.ndarray:
        return places.turned_places(self.size, int(state.current_player))

    def whites_view(self, state: ChessState) -> np.ndarray:
        """Returns the `[N, N]` pieces, positive for White, with White's first row at the bottom."""
        board = np.asarray(state.board()).reshape(self.size, self.size)
        return -board[::-1] if int(state.current_player) else board

    def _status(self, state: ChessState) -> str:
        ply, mover = f"ply {int(state.num_moves)}", int(state.current_player)
        if not state.terminated:
            return f"{ply}: {('white', 'black')[mover]} to move"
        planes, in_check = chess_rules.legal_planes(state)
        stuck = not planes.any().any()
        if stuck and in_check:
            return f"{ply}: {('black', 'white')[mover]} won by checkmate"
        reasons = (
            (stuck, "stalemate"),
            (bool(chess_rules.is_insufficient(state.position(), self.size)), "too little material"),
            (int(state.repetitions) >= 2, "third repetition"),
            (int(state.reversible) >= chess_rules.MAX_REVERSIBLE, "50 moves without capture or pawn move"),
            (True, "length"),
        )
        return f"{ply}: draw by {next(reason for holds, reason in reasons if holds)}"

    def _special_squares(self, state: ChessState) -> list[Squares]:
        """Lists the en passant target, the rooks with castling rights, and both squares of the last move."""
        last_move = [only(state.last_move[end].astype(jnp.int32)) for end in range(2)]
        passed = state.position().en_passant
        if state.castling is None or passed is None:
            nowhere = only(jnp.int32(-1))
            return [nowhere, nowhere, *last_move]
        corners = np.array([self.size * (self.size - 1), self.size**2 - 1, 0, self.size - 1])
        rooks = only(jnp.where(state.castling, corners, -1)).union()
        return [passed, rooks, *last_move]


@jax.jit
def _board_of(state: ChessState) -> jax.Array:
    return state.board()


def _sides(position: chess_moves.Position) -> tuple[Squares, Squares]:
    return position.own, ~position.own


def _place_features(size: int) -> np.ndarray:
    """Returns `[N * N, 3]` float32: rows to the last row, rows from the first row, columns to the nearer edge."""
    row, column = np.divmod(np.arange(size * size), size)
    edge = np.minimum(column, size - 1 - column)
    places = np.minimum(row, 4) / 4, np.minimum(size - 1 - row, 4) / 4, np.minimum(edge, 3) / 3
    return np.stack(places, axis=-1).astype(np.float32)


def make_chess(name: str) -> ChessGame:
    """Makes `chess`."""
    if name != "chess":
        raise UserError(f"board {name}: it must be chess; for 5x5 squares use gardner_chess")
    return ChessGame(name, 8)


def make_gardner_chess(name: str) -> ChessGame:
    """Makes `gardner_chess`."""
    if name != "gardner_chess":
        raise UserError(f"board {name}: it must be gardner_chess; for 8x8 squares use chess")
    return ChessGame(name, 5)
