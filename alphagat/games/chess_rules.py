"""Rules of chess on 8 x 8 squares, and of Gardner's chess on 5 x 5 without double pawn steps and castling."""

import jax
import jax.numpy as jnp
import numpy as np

from alphagat.games import base, chess_graph, chess_moves, square_sets
from alphagat.games.chess_moves import BISHOP, KING, KNIGHT, PAWN, QUEEN, ROOK, Position
from alphagat.games.square_sets import Squares, constant, only
from alphagat.games.transition import win_rewards

MAX_PLIES = {5: 256, 8: 512}
MAX_REVERSIBLE = 100  # plies
KINDS = np.arange(PAWN, KING + 1)


class ChessState(base.State):
    """A position from the perspective of the player to move, with the history that draws need.

    Attributes:
      pieces: `[7, W]` uint32, sets of squares: all pieces of the player to move, then the pawns, knights, bishops,
        rooks, queens and kings of both players. W is 1 for 5 x 5 squares, 2 for 8 x 8.
      castling: `[4]` bool, castling rights of the player to move, left and right, then of the opponent; None without
        castling.
      en_passant: `[]` int8, the column of an enemy pawn that can be captured en passant, or -1; None without double
        steps.
      reversible: `[]` int8, plies since the last capture or pawn move.
      repetitions: `[]` int8, how often this position occurred before.
      last_move: `[2]` int8, origin and target of the opponent's last move; -1 before the first move.
      num_moves: `[]` int16.
      hashes: `[100, 2]` uint32, of this and the preceding positions, newest first.
      planes: `[N + 1, 8, W]` uint32, the legal moves in the format of `chess_moves`.
    """

    pieces: jax.Array
    castling: jax.Array | None
    en_passant: jax.Array | None
    reversible: jax.Array
    repetitions: jax.Array
    last_move: jax.Array
    num_moves: jax.Array
    hashes: jax.Array
    planes: jax.Array

    @property
    def size(self) -> int:
        return 5 if self.pieces.shape[-1] == 1 else 8

    @property
    def legal_action_mask(self) -> jax.Array:
        flags = square_sets.from_words(self.planes).mask(self.size**2)  # [..., N + 1, 8, N * N]
        return flags.reshape(*flags.shape[:-3], -1)[..., chess_graph.make_actions(self.size).places]

    def position(self) -> Position:
        sets = square_sets.from_words(self.pieces)
        kinds = Squares(sets.low[1:], sets.high[1:])
        if self.castling is None or self.en_passant is None:
            return Position(sets.take(0), kinds, None, None)
        row = jnp.where(self.en_passant >= 0, 2 * self.size, 0)
        return Position(sets.take(0), kinds, self.castling[:2], only(row + self.en_passant))

    def board(self) -> jax.Array:
        """Returns `[N * N]` int8 pieces, 0 for none, positive for the player to move."""
        own, *kinds = square_sets.from_words(self.pieces).mask(self.size**2)
        kind = sum(jnp.where(mask, jnp.int8(number), jnp.int8(0)) for number, mask in zip(KINDS, kinds))
        return jnp.where(own, kind, -kind)


def start(board: np.ndarray, castling: np.ndarray | None, player: int = 0, en_passant: int = -1) -> ChessState:
    """Returns an initial state.

    Args:
      board: `[N, N]` pieces from the perspective of the player to move, whose pieces are positive.
      castling: `[4]` bool, or None.
      player: the player to move.
      en_passant: the column of an enemy pawn that has just made a double step, or -1.
    """
    flat = board.ravel()
    sets = [constant(np.flatnonzero(flat > 0)), *(constant(np.flatnonzero(abs(flat) == kind)) for kind in KINDS)]
    state = ChessState(
        current_player=jnp.int8(player),
        rewards=jnp.zeros(2, jnp.float32),
        terminated=jnp.bool_(False),
        pieces=square_sets.stack(sets).words(flat.size),
        castling=None if castling is None else jnp.asarray(castling, bool),
        en_passant=None if castling is None else jnp.int8(en_passant),
        reversible=jnp.int8(0),
        repetitions=jnp.int8(0),
        last_move=jnp.full(2, -1, jnp.int8),
        num_moves=jnp.int16(0),
        hashes=jnp.zeros((MAX_REVERSIBLE, 2), jnp.uint32),
        planes=jnp.zeros((0, 8, 0), jnp.uint32),  # replaced below
    )
    planes, _ = legal_planes(state)
    state = state.replace(planes=planes.words(flat.size), en_passant=_useful_en_passant(state, planes))
    return state.replace(hashes=state.hashes.at[0].set(hash_of(state)))


def without_history(state: ChessState) -> ChessState:
    """Returns the position as the start of a game, so that a game can go on in which nobody claims a draw. It is over
    only after mate or stalemate.
    """
    planes, _ = legal_planes(state)
    over = ~planes.any().any()
    return state.replace(
        terminated=over,
        reversible=jnp.int8(0),
        repetitions=jnp.int8(0),
        num_moves=jnp.int16(0),
        hashes=jnp.zeros_like(state.hashes).at[0].set(hash_of(state)),
        planes=planes.words(state.size**2),
    )


@jax.jit
def legal_planes(state: ChessState) -> tuple[Squares, jax.Array]:
    """Returns `chess_moves.legal_planes` of the position, ignoring draws."""
    return chess_moves.legal_planes(state.position(), state.size)


def step(state: ChessState, action: jax.Array) -> ChessState:
    after = move(state, action)
    planes, in_check = legal_planes(after)
    after = _remember(after.replace(en_passant=_useful_en_passant(after, planes)))
    stuck = ~planes.any().any()
    over = stuck | (after.reversible >= MAX_REVERSIBLE) | (after.repetitions >= 2)
    over |= is_insufficient(after.position(), state.size) | (after.num_moves >= MAX_PLIES[state.size])
    planes = planes.where(~over).words(state.size**2)
    rewards = win_rewards(state.current_player, stuck & in_check)
    return base.absorb(state, after.replace(rewards=rewards, terminated=over, planes=planes))


def move(state: ChessState, action: jax.Array) -> ChessState:
    """Plays the action and turns the board over; leaves planes, hashes and repetitions unchanged."""
    size, position = state.size, state.position()
    actions = chess_graph.make_actions(size)
    here, there = jnp.asarray(actions.senders)[action], jnp.asarray(actions.receivers)[action]
    source, target = only(here), only(there)
    moved = (position.kinds & source).any()  # [6]
    is_pawn = moved[0]
    captures = (position.occupied() & target).any()
    piece = (moved * KINDS).sum()
    promoted = jnp.asarray(np.array([QUEEN, ROOK, BISHOP, KNIGHT]))[jnp.asarray(actions.kinds)[action]]
    placed = jnp.where(is_pawn & (there < size), promoted, piece)
    own, kinds = position.own & ~source, position.kinds & ~source & ~target
    castling, en_passant = state.castling, state.en_passant
    if castling is not None and position.en_passant is not None:
        passed = position.en_passant & target.where(is_pawn)
        kinds &= ~square_sets.shift(passed, size, ((1, 0),)).union()
        rooks = _castling_rooks(size, source.where(moved[5]), target)
        own, kinds = own ^ rooks, kinds ^ rooks.where(KINDS == ROOK)
        jumps = is_pawn & (here - there == 2 * size)
        en_passant = jnp.where(jumps, there % size, -1).astype(jnp.int8)
        castling = jnp.roll(castling & _kept_castling(size, here, there), 2)
    sets = square_sets.stack([kinds.union() & ~own, *(kinds.take(kind) for kind in range(6))])
    landing = turned(there, size)
    # The scatter of one piece comes last, so that XLA does not recompute everything above for each use of the pieces.
    pieces = square_sets.turn_over(sets, size).words(size**2).at[placed].add(only(landing).words(size**2))
    calm = ~is_pawn & ~captures
    return state.replace(
        current_player=jnp.int8(1) - state.current_player,
        pieces=pieces,
        castling=castling,
        en_passant=en_passant,
        reversible=jnp.where(calm, state.reversible + jnp.int8(1), jnp.int8(0)),
        last_move=jnp.stack([turned(here, size), landing]).astype(jnp.int8),
        num_moves=state.num_moves + jnp.int16(1),
    )


def _useful_en_passant(state: ChessState, planes: Squares) -> jax.Array | None:
    """Returns `en_passant` if such a capture is legal, else -1, because only legal moves distinguish positions."""
    position = state.position()
    if state.en_passant is None or position.en_passant is None:
        return None
    pawns = position.kinds.take(0) & position.own
    takes = square_sets.shift(pawns, state.size, chess_moves.STEPS) & position.en_passant & planes.take(0)
    return jnp.where(takes.any()[np.array(chess_moves.EN_PASSANT)].any(), state.en_passant, jnp.int8(-1))


def _remember(state: ChessState) -> ChessState:
    """Counts earlier occurrences of the position, and adds it to the history."""
    hashed = hash_of(state)
    return state.replace(
        # The same player was to move in every second preceding position.
        repetitions=(state.hashes[1::2] == hashed[None]).all(axis=-1).sum(dtype=jnp.int8),
        hashes=jnp.concatenate([hashed[None], state.hashes[:-1]]),
    )


def turned(squares, size: int):
    """Returns the numbers of these squares from the other player's view."""
    return squares + size * (size - 1 - 2 * (squares // size))


def _castling_rooks(size: int, source: Squares, target: Squares) -> Squares:
    """Returns origin and target of the rook if the king on `source` castles to `target`, else the empty set."""
    rooks = constant(())
    for rook, *_, column in chess_moves.CASTLING:
        home = chess_moves.row_of(size, size - 1, (chess_moves.KING_COLUMN,))
        goal = chess_moves.row_of(size, size - 1, (column,))
        castles = (source & home).any() & (target & goal).any()
        beside = (chess_moves.KING_COLUMN + column) // 2
        rooks |= chess_moves.row_of(size, size - 1, (rook, beside)).where(castles)
    return rooks


def _kept_castling(size: int, here: jax.Array, there: jax.Array) -> jax.Array:
    """Returns `[4]` bool, the castling rights whose king and rook the move neither moves nor captures."""
    first = size * (size - 1)
    king = here != first + chess_moves.KING_COLUMN
    own = [king & (here != first + rook) for rook, *_ in chess_moves.CASTLING]
    return jnp.stack([*own, *(there != rook for rook, *_ in chess_moves.CASTLING)])


@jax.jit
def hash_of(state: ChessState) -> jax.Array:
    """Returns `[2]` uint32, the sum of a key for each piece: multilinear hashing, Carter and Wegman 1979."""
    size = state.size
    keys = np.random.RandomState(size).randint(2**32, size=(8, 2, size**2), dtype=np.uint32)

    def add(total, squares_and_keys):
        squares, keys = squares_and_keys
        members = square_sets.from_words(squares).mask(size**2)[None]
        return total + jnp.where(members, keys, jnp.uint32(0)).sum(axis=-1, dtype=jnp.uint32), None

    # A loop, because XLA would recompute a plain sum for every hash to which it is compared.
    total, _ = jax.lax.scan(add, jnp.zeros(2, jnp.uint32), (state.pieces, jnp.asarray(keys[:7])))
    if state.castling is not None and state.en_passant is not None:
        rights = (jnp.arange(8) == state.en_passant, state.castling)
        flags = jnp.concatenate(rights)[None]
        total += jnp.where(flags, keys[7, :, : flags.size], jnp.uint32(0)).sum(axis=-1, dtype=jnp.uint32)
    return total


def is_insufficient(position: Position, size: int) -> jax.Array:
    """Returns whether material is insufficient: bare kings, one minor piece, or only bishops on one square colour."""
    dark = constant(square for square in range(size**2) if (square // size + square % size) % 2)
    knights, bishops = (position.kinds.take(kind - PAWN) for kind in (KNIGHT, BISHOP))
    count, num_bishops, num_dark = position.occupied().size(), bishops.size(), (bishops & dark).size()
    one_minor = (count == 3) & (num_bishops + knights.size() == 1)
    return (count == 2) | one_minor | ((count == num_bishops + 2) & ((num_dark == 0) | (num_dark == num_bishops)))
