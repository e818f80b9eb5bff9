"""Chess against python-chess and Pgx's, move by move, Gardner's against Pgx's and a slow reference."""

import itertools

import chess
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pgx._src.games.chess import FROM_PLANE
from pgx._src.gardner_chess_utils import TO_MAP

from alphagat.games import chess_rules, make_game
from alphagat.games.batches import play_all, take
from alphagat.games.chess_graph import VOCABULARY
from alphagat.games.states import first_state
from tests.games import pgx_games
from tests.games.pgx_games import num_bytes, replay
from tests.games.playing import perft

NUM_GAMES = 32


def pgx_labels(game):
    """Returns `[A]`, how Pgx numbers our actions: square * planes + plane, squares up the columns from the left."""
    size = game.size
    targets = np.asarray(FROM_PLANE if size == 8 else TO_MAP)
    squares = (size - 1 - np.arange(size**2) % size) * size + np.arange(size**2) // size
    places = zip(game.topology.action_senders, game.topology.action_receivers, game.topology.action_kinds)
    number = {place: action for action, place in enumerate(places)}
    labels = np.full(game.num_actions, -1)
    for here, plane in np.argwhere(targets >= 0):
        kind = 1 + plane // 3 if plane < 9 else 0
        labels[number[squares[here], squares[targets[here, plane]], kind]] = here * targets.shape[1] + plane
    assert (labels >= 0).all()
    return labels


@pytest.mark.parametrize(("name", "size_ratio"), [("gardner_chess", 12), ("chess", 25)])
def test_matches_pgx(name, size_ratio, record):
    game, games = make_game(name), record(name, NUM_GAMES)
    labels = pgx_labels(game)
    theirs = replay(pgx_games.make(name), labels[games.actions])
    assert (games.legal == theirs.legal[:, :, labels]).all()
    assert (games.legal.sum(axis=-1) == theirs.legal.sum(axis=-1)).all()
    assert (games.players == theirs.players).all()
    assert (games.rewards == theirs.rewards).all()
    assert (games.terminated == theirs.terminated).all()
    assert size_ratio * num_bytes(jax.tree.map(lambda x: x[-1], games.states)) < num_bytes(theirs.state)


BOARD = jax.jit(chess_rules.ChessState.board)
BOARDS = jax.jit(jax.vmap(chess_rules.ChessState.board))


def boards_of(states):
    """Returns `[N * N]` or `[T, N * N]` int8 pieces as the player to move sees them."""
    return np.asarray((BOARDS if states.num_moves.ndim else BOARD)(states))


def real_names(game, states, legal):
    """Returns for each of a batch of states the sorted names of its legal moves."""
    boards, players = boards_of(states), np.asarray(states.current_player)
    return [
        sorted(game.move_name(board, player, action) for action in np.flatnonzero(moves))
        for board, player, moves in zip(boards, players, legal)
    ]


def test_matches_python_chess(record):
    game, games = make_game("chess"), record("chess", NUM_GAMES)
    ends = set()
    for number in range(NUM_GAMES):
        board, length = chess.Board(), games.length(number)
        states = jax.tree.map(lambda x, number=number, length=length: x[: length + 1, number], games.states)
        names = real_names(game, states, games.legal[: length + 1, number])
        pieces = boards_of(states)
        for ply in range(length):
            assert not games.terminated[ply, number]
            assert names[ply] == sorted(move.uci() for move in board.legal_moves)
            assert int(states.reversible[ply]) == board.halfmove_clock
            assert bool(states.repetitions[ply] > 0) == board.is_repetition(2)
            board.push_uci(game.move_name(pieces[ply], ply % 2, games.actions[ply, number]))
        if not games.terminated[length, number]:
            continue
        outcome = board.outcome()
        winner = None if outcome is None else outcome.winner
        expected = {None: [0, 0], chess.WHITE: [1, -1], chess.BLACK: [-1, 1]}[winner]
        assert games.rewards[length, number].tolist() == expected
        ends |= {outcome.termination.name} if outcome else set()
        claims = board.is_fifty_moves() or board.is_repetition(3)
        assert outcome is not None or claims
    assert ends


def state_of(fen):
    board = chess.Board(fen)
    pieces = np.zeros((8, 8), np.int8)
    for square, piece in board.piece_map().items():
        own = piece.color == board.turn
        row = chess.square_rank(square) if board.turn == chess.BLACK else 7 - chess.square_rank(square)
        pieces[row, chess.square_file(square)] = piece.piece_type if own else -piece.piece_type
    sides = (board.turn, not board.turn)
    rights = [
        right(side)
        for side in sides
        for right in (board.has_queenside_castling_rights, board.has_kingside_castling_rights)
    ]
    jumped = -1 if board.ep_square is None else chess.square_file(board.ep_square)
    return chess_rules.start(pieces, np.array(rights), 0 if board.turn else 1, jumped)


OBSERVE = jax.jit(make_game("chess").observe)


@pytest.mark.parametrize(
    ("fen", "counts"),
    [
        (chess.STARTING_FEN, [20, 400, 8902]),
        # positions of the chess programming wiki: castling, pins, en passant, promotions
        ("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", [48, 2039, 97862]),
        ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", [14, 191, 2812, 43238]),
        ("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", [6, 264, 9467]),
        ("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", [44, 1486, 62379]),
    ],
)
def test_perft_matches_known_counts(fen, counts):
    states = jax.tree.map(lambda x: x[None], state_of(fen))
    assert perft(make_game("chess"), states, len(counts)) == counts


@pytest.mark.parametrize(
    "fen",
    [
        "4r2k/8/8/8/8/5n2/3B2P1/4K3 w - - 0 1",  # two checks at once: no capture helps
        "8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1",  # both pawns of an en passant leave the king's row
        "8/8/8/2k5/3Pp3/8/8/4K3 b - d3 0 1",  # en passant takes the pawn that gives check
        "r3k2r/8/8/8/8/5q2/8/R3K2R w KQkq - 0 1",  # the queen attacks what the king would pass
        "r3k2r/1P4P1/8/8/8/8/1p4p1/R3K2R b KQkq - 0 1",
    ],
)
def test_special_positions_match_python_chess(fen):
    game, state, board = make_game("chess"), state_of(fen), chess.Board(fen)
    legal = np.flatnonzero(np.asarray(state.legal_action_mask))
    assert sorted(game.action_name(state, action) for action in legal) == sorted(map(str, board.legal_moves))


def test_king_and_rook_moves_lose_castling_rights():
    game, state = make_game("chess"), state_of("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1")
    castling = lambda moves: play_names(game, moves, state)[-1].castling.tolist()  # noqa: E731
    assert castling("") == [True] * 4
    assert castling("a1a8") == [False, True, False, True]
    assert castling("h1h8") == [True, False, True, False]
    assert castling("a1b1 h8h2") == [False, True, True, False]
    assert castling("e1d1") == [True, True, False, False]
    assert castling("e1g1 e8c8") == [False] * 4


class SlowGardner:
    """Tries every move and looks whether the king can be taken; shares no code with ours."""

    LEAPS = {  # noqa: RUF012
        "N": [(a, b) for a in (-2, -1, 1, 2) for b in (-2, -1, 1, 2) if abs(a) != abs(b)],
        "K": [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b],
    }

    def __init__(self):
        self.board = {(0, c): piece for c, piece in enumerate("rnbqk")} | {(4, c): p for c, p in enumerate("RNBQK")}
        self.board |= {(1, c): "p" for c in range(5)} | {(3, c): "P" for c in range(5)}
        self.white = True

    def reached(self):
        """Yields (here, there) that ignore the safety of the king."""
        for (row, column), piece in list(self.board.items()):
            if piece.isupper() != self.white:
                continue
            kind = piece.upper()
            if kind == "P":
                forward = -1 if self.white else 1
                for side in (-1, 0, 1):
                    there = (row + forward, column + side)
                    if self.inside(there) and (self.board.get(there) is None) == (side == 0) and not self.own(there):
                        yield (row, column), there
                continue
            for down, right in self.LEAPS.get(kind, self.LEAPS["K"]):
                if (kind == "B" and not down * right) or (kind == "R" and down * right):
                    continue
                for far in range(1, 2 if kind in "NK" else 5):
                    there = (row + far * down, column + far * right)
                    if not self.inside(there) or self.own(there):
                        break
                    yield (row, column), there
                    if there in self.board:
                        break

    def inside(self, square):
        return 0 <= square[0] < 5 and 0 <= square[1] < 5

    def own(self, square):
        return square in self.board and self.board[square].isupper() == self.white

    def push(self, here, there, promotion="Q"):
        piece = self.board.pop(here)
        if piece in "Pp" and there[0] in (0, 4):
            piece = promotion if self.white else promotion.lower()
        self.board[there] = piece
        self.white = not self.white

    def moves(self):
        names = []
        for here, there in self.reached():
            after = SlowGardner()
            after.board, after.white = dict(self.board), self.white
            after.push(here, there)
            if not any(after.board.get(target) in ("K", "k") for _, target in after.reached()):
                name = "".join(f"{'abcde'[column]}{5 - row}" for row, column in (here, there))
                promotes = self.board[here] in "Pp" and there[0] in (0, 4)
                names += [name + suffix for suffix in ("qrbn" if promotes else ("",))]
        return sorted(names)


def test_gardner_chess_matches_slow_reference(record):
    game, games = make_game("gardner_chess"), record("gardner_chess", NUM_GAMES)
    promotions = 0
    for number in range(6):
        slow, length = SlowGardner(), games.length(number)
        states = jax.tree.map(lambda x, number=number, length=length: x[: length + 1, number], games.states)
        names, boards = real_names(game, states, games.legal[: length + 1, number]), boards_of(states)
        for ply in range(length):
            assert names[ply] == slow.moves()
            name = game.move_name(boards[ply], ply % 2, games.actions[ply, number])
            here, there = ((5 - int(name[at + 1]), "abcde".index(name[at])) for at in (0, 2))
            slow.push(here, there, name[4:].upper())
            promotions += len(name) == 5
        if games.rewards[length, number].any():
            assert not slow.moves()
            slow.white = not slow.white
            assert any(slow.board.get(there) in ("K", "k") for _, there in slow.reached())
            assert games.rewards[length, number].tolist() == ([1, -1] if slow.white else [-1, 1])
    assert promotions > 2


def test_gardner_chess_is_mirror_symmetric(record):
    """From the mirrored first position, mirrored play gives mirrored features, moves and results."""
    game, games = make_game("gardner_chess"), record("gardner_chess", NUM_GAMES)
    node, action = (table[1] for table in (game.symmetries.node_permutations, game.symmetries.action_permutations))
    first = jax.tree.map(lambda x: x[0, 0], games.states)
    mirrored = chess_rules.start(boards_of(first).reshape(5, 5)[:, ::-1], None)
    step, key = jax.vmap(game.step, in_axes=(0, 0, None)), jax.random.key(0)

    @jax.jit
    def play(actions):
        start = jax.tree.map(lambda x: jnp.broadcast_to(x, (actions.shape[1], *x.shape)), mirrored)
        _, states = jax.lax.scan(lambda state, action: (step(state, action, key),) * 2, start, actions)
        return states, states.legal_action_mask

    plies = 60
    states, legal = play(np.argsort(action).astype(np.int32)[games.actions[:plies]])
    assert (np.asarray(legal) == games.legal[1 : plies + 1][:, :, action]).all()
    assert (np.asarray(states.rewards) == games.rewards[1 : plies + 1]).all()
    observe = jax.jit(jax.vmap(jax.vmap(game.observe)))
    ours = observe(jax.tree.map(lambda x: x[1 : plies + 1], games.states))
    assert (np.asarray(observe(states)) == np.asarray(ours)[:, :, node]).all()


def play_names(game, moves, state=None):
    """Plays moves in UCI notation; returns all states from the first one on."""
    state = first_state(game) if state is None else state
    states = [state]
    for move in moves.split():
        legal = np.flatnonzero(np.asarray(state.legal_action_mask))
        board, player = boards_of(state), int(state.current_player)
        action = next(action for action in legal if game.move_name(board, player, action) == move)
        after = play_all(game, jax.tree.map(lambda x: np.asarray(x)[None], state), np.array([0]), np.array([action]))
        state = take(after, 0)
        states.append(state)
    return states


def python_board(moves):
    board = chess.Board()
    for move in moves.split():
        board.push_uci(move)
    return board


def test_threefold_repetition_is_a_draw():
    game = make_game("chess")
    states = play_names(game, "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8")
    assert [int(state.repetitions) for state in states] == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert [bool(state.terminated) for state in states] == [False] * 8 + [True]
    assert states[-1].rewards.tolist() == [0, 0]
    assert game.render(states[-1]).endswith("ply 8: draw by third repetition")


@pytest.mark.parametrize(
    ("fen", "moves", "repeats"),
    [
        (chess.STARTING_FEN, "e2e4 g8f6 g1f3 f6g8 f3g1", True),  # nobody takes on e3
        ("kn6/3p4/8/4P3/8/8/8/1N2K3 b - - 0 1", "d7d5 b1c3 b8c6 c3b1 c6b8", False),  # White may take on d6 at first
        ("kn2r3/3p4/8/4P3/8/8/8/1N2K3 b - - 0 1", "d7d5 b1c3 b8c6 c3b1 c6b8", True),  # the pawn is pinned
        ("kb6/3p4/8/8/8/8/2B5/4K3 b - - 0 1", "d7d5 c2b1 b8a7 b1c2 a7b8", True),  # bishops reach d6, pawns don't
        (chess.STARTING_FEN, "g1f3 g8f6 f3g1 h8g8 g1f3 g8h8", False),  # Black loses the right to castle
        (chess.STARTING_FEN, "g1f3 g8f6 h1g1 h8g8 g1h1 g8h8", False),  # so do both
        # Equal only after exchanging the colours.
        ("r3k3/8/8/8/8/8/8/R3K3 w - - 0 1", "e1d1 e8f8 d1d2 f8e8 d2e1", False),
    ],
)
def test_double_steps_and_castling_rights_affect_repetitions(fen, moves, repeats):
    game, board = make_game("chess"), chess.Board(fen)
    state, step = state_of(fen), jax.jit(game.step)
    for name in moves.split():
        names = {game.action_name(state, action): action for action in np.flatnonzero(state.legal_action_mask)}
        state = step(state, np.int32(names[name]), jax.random.key(0))
        board.push_uci(name)
        assert bool(state.repetitions > 0) == board.is_repetition(2)
    assert board.is_repetition(2) == repeats


@pytest.mark.parametrize(
    ("fen", "over"),
    [
        ("8/8/4k3/8/8/3K4/8/8 w - - 0 1", True),
        ("8/8/4k3/8/8/3KN3/8/8 w - - 0 1", True),
        ("8/8/4k3/8/8/3Kb3/8/8 w - - 0 1", True),
        ("8/8/4k3/8/8/3KNN2/8/8 w - - 0 1", False),
        ("8/8/4k3/5b2/8/3KB3/8/8 w - - 0 1", False),
        ("8/8/4k3/6b1/8/3KB3/8/8 w - - 0 1", True),
        ("8/8/4k3/6n1/8/3KB3/8/8 w - - 0 1", False),
        ("8/8/4k3/6p1/8/3K4/8/8 w - - 0 1", False),
        ("8/8/4k3/6r1/8/3K4/8/8 w - - 0 1", False),
    ],
)
def test_insufficient_material_is_a_draw(fen, over):
    assert bool(chess_rules.is_insufficient(state_of(fen).position(), 8)) == over
    assert chess.Board(fen).is_insufficient_material() == over


def test_mate_stalemate_and_a_hundred_plies_end_the_game():
    game = make_game("chess")
    mated = play_names(game, "f2f3 e7e5 g2g4 d8h4")[-1]
    assert mated.rewards.tolist() == [-1, 1]
    assert mated.terminated
    assert game.render(mated).endswith("ply 4: black won by checkmate")
    stale = play_names(game, "f7g6", state_of("7k/5Q2/8/8/8/8/8/K7 w - - 0 1"))[-1]
    assert stale.rewards.tolist() == [0, 0]
    assert game.render(stale).endswith("draw by stalemate")
    quiet = state_of("7k/8/8/8/8/8/R7/K7 w - - 0 1").replace(reversible=jnp.int8(98))
    states = play_names(game, "a2b2 h8g8", quiet)
    assert [bool(state.terminated) for state in states] == [False, False, True]
    assert game.render(states[-1]).endswith("50 moves without capture or pawn move")
    assert play_names(game, "a2h2", quiet.replace(reversible=jnp.int8(99)))[-1].terminated
    late = [play_names(game, "g1f3", first_state(game).replace(num_moves=jnp.int16(plies)))[-1] for plies in (510, 511)]
    assert [bool(state.terminated) for state in late] == [False, True]
    assert late[1].rewards.tolist() == [0, 0]


@pytest.mark.parametrize(("player", "rooks"), [("w", ["h8", "a1"]), ("b", ["a8", "h1"])])
def test_features_show_the_rooks_that_may_castle(player, rooks):
    """In the view of the player to move, Black's board is upside down."""
    state = state_of(f"r3k2r/8/8/8/8/8/8/R3K2R {player} Qk - 0 1")
    shown = np.flatnonzero(np.asarray(OBSERVE(state))[:, 13])
    assert [make_game("chess").square_names[square] for square in shown] == rooks


def test_actions_are_from_view_of_player_to_move():
    game = make_game("chess")
    assert game.num_actions == 1858
    assert make_game("gardner_chess").num_actions == len(pgx_labels(make_game("gardner_chess")))
    first, second = play_names(game, "e2e4")
    push = game.action_names.index("e2e4")
    assert game.action_name(first, push) == "e2e4"
    assert game.action_name(second, push) == "e7e5"
    promoting = state_of("8/4P2k/8/8/8/8/8/K7 w - - 0 1")
    names = {name: game.action_name(promoting, game.action_names.index(name)) for name in ("e7e8", "e7e8r", "e7e8n")}
    assert names == {"e7e8": "e7e8q", "e7e8r": "e7e8r", "e7e8n": "e7e8n"}


def test_features_are_from_view_of_player_to_move():
    game = make_game("chess")
    moves = "e2e4 g8f6 e4e5 d7d5"
    states = play_names(game, moves)
    nodes = np.asarray(OBSERVE(states[-1]))
    grid = nodes.T.reshape(25, 8, 8)
    where = lambda feature: [game.square_names[square] for square in np.flatnonzero(nodes[:, feature])]  # noqa: E731
    assert where(0) == ["e5", "a2", "b2", "c2", "d2", "f2", "g2", "h2"]
    assert where(5) == ["e1"]
    assert where(7) == ["b8", "f6"]
    assert where(12) == ["d6"]
    assert where(13) == ["a8", "h8", "a1", "h1"]
    assert (where(14), where(15)) == (["d7"], ["d5"])
    board = python_board(moves)
    for feature, colour in ((16, chess.WHITE), (17, chess.BLACK)):
        attacked = [name for name in game.square_names if board.is_attacked_by(colour, chess.parse_square(name))]
        assert where(feature) == attacked
    assert grid[18, :, 0].tolist() == [0, 0.25, 0.5, 0.75, 1, 1, 1, 1]
    assert grid[19, :, 0].tolist() == [1, 1, 1, 1, 0.75, 0.5, 0.25, 0]
    assert grid[20, 0] == pytest.approx([0, 1 / 3, 2 / 3, 1, 1, 2 / 3, 1 / 3, 0])
    assert (nodes[:, 21:] == np.float32([0, 0, 4 / 512, 1])).all()
    black = np.asarray(OBSERVE(states[1])).T.reshape(25, 8, 8)
    assert (black[0, 6] == 1).all()
    assert black[6, 4].tolist() == [0, 0, 0, 0, 0, 0, 0, 0]
    assert black[6, 3].tolist() == [0, 0, 0, 0, 1, 0, 0, 0]
    assert (black[24] == 0).all()
    again = play_names(game, "g1f3 g8f6 f3g1 f6g8")[-1]
    assert (np.asarray(OBSERVE(again))[:, 21:23] == np.float32([1, 0.04])).all()


def test_relations_describe_sender_from_receiver_view():
    relation = VOCABULARY.index
    matrix = make_game("chess").topology.relation_matrix
    square = {name: number for number, name in enumerate(make_game("chess").square_names)}
    assert matrix[square["e4"], square["e5"]] == relation("n1")
    assert matrix[square["e4"], square["g2"]] == relation("se2")
    assert matrix[square["a1"], square["a8"]] == matrix[square["a1"], square["a5"]] == relation("n4+")
    assert matrix[square["g1"], square["f3"]] == relation("knight at (-2,-1)")
    assert matrix[square["a1"], square["b4"]] == -1


def test_both_boards_share_one_vocabulary():
    games = [make_game(name) for name in ("chess", "gardner_chess")]
    assert all(game.topology.vocabulary is VOCABULARY for game in games)
    assert len({game.num_features for game in games}) == 1
    used = [set(game.topology.relations.tolist()) for game in games]
    assert used[0] == used[1] == set(range(len(VOCABULARY.relations)))


def test_drawings_show_pieces_from_whites_side():
    game = make_game("gardner_chess")
    states = play_names(game, "b1a3")
    assert game.render(states[-1]).split("\n") == [
        "5 r n b q k",
        "4 p p p p p",
        "3 N . . . .",
        "2 P P P P P",
        "1 R . B Q K",
        "  a b c d e",
        "ply 1: black to move",
    ]
    drawings = [game.render_svg(state) for state in states]
    assert all(drawing.count("♟") == 10 and drawing.count("♚") == 2 for drawing in drawings)
    assert [drawing.count("#f6e27a") + drawing.count("#d8b23f") for drawing in drawings] == [0, 2]
    assert all(one != other for one, other in itertools.pairwise(drawings))
