"""SGF (FF[4]), the format of games on every board but chess, by sgfmill."""

import re
from collections.abc import Callable
from string import ascii_lowercase

from sgfmill import sgf_grammar

from alphagat.errors import UserError
from alphagat.evaluation.game_formats import limits
from alphagat.evaluation.game_formats.record import GameRecord
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.games.go import GoGame, name_of
from alphagat.games.hex import SWAPS, HexGame
from alphagat.games.mnk import MnkGame
from alphagat.games.othello import OthelloGame

# Game numbers of SGF (property GM); 0 for games without one.
NUMBERS = {"go": 1, "othello": 2, "gomoku": 4, "hex": 11}
FAMILIES = {str(number): family for family, number in NUMBERS.items()}
RESULTS = {"B": 1, "W": -1, "0": 0, "DRAW": 0, "JIGO": 0}


def write(record: GameRecord) -> str:
    """Returns one game as SGF; a file is a concatenation of games. Moves are SGF points in Go, else `action_name`."""
    game, (family, *arguments) = make_game(record.board), record.board.split(":")
    root = {
        "FF": "4",
        "GM": str(NUMBERS.get(family, 0)),
        "CA": "UTF-8",
        "AP": "AlphaGAT",
        "SZ": _size(arguments),
        "GN": record.board,
        "PB": record.names[0],
        "PW": record.names[1],
        "RE": _result(record),
        "GC": record.forfeit,
    }
    if isinstance(game, GoGame):
        root |= {"RU": "Tromp-Taylor", "KM": f"{game.komi:g}"}
    nodes = [{name: [sgf_grammar.escape_text(value.encode())] for name, value in root.items() if value}]
    for move, player in zip(record.moves, record.players):
        nodes.append({"BW"[player]: [sgf_grammar.escape_text(_point(game, move).encode())]})
    tree = sgf_grammar.Coarse_game_tree()
    tree.sequence = nodes
    return sgf_grammar.serialise_game_tree(tree).decode()


def read(text: str, board: str = "", most: int | None = None) -> list[GameRecord]:
    """Reads the main variations of all games, or of the first ones.

    Args:
      board: the board of games that neither name nor describe another one.
      most: the number of games to read; None: all.

    Raises:
      UserError: the text is not SGF, a game is on no known board, has another komi or placed stones, or the file
        exceeds a limit.
    """
    data = text.encode(errors="replace")
    limits.check(data.count(b";"), limits.MAX_NODES, "nodes", "split the file")
    if most is not None:
        data = _first_games(data, most)
    try:
        trees = sgf_grammar.parse_sgf_collection(data)
    except ValueError as error:
        if damaged := re.fullmatch(r"error parsing game (\d+): (.*)", str(error)):  # sgfmill counts from 0
            raise UserError(f"game {int(damaged[1]) + 1}: it is damaged ({damaged[2]}); remove it") from error
        raise UserError(f"this is neither PGN nor SGF: {error}") from error
    limits.check(len(trees), limits.MAX_GAMES, "games", "split the file")
    records, boards = [], set()
    for number, tree in enumerate(trees, 1):
        try:
            records.append(_read_tree(tree, board))
        except UserError as error:
            raise UserError(f"game {number}: {error}") from error
        boards.add(records[-1].board)
        limits.check(len(boards), limits.MAX_BOARDS, "boards", "write a file for each board")
    return records


def _first_games(data: bytes, most: int) -> bytes:
    """Returns the data up to the end of the first games. Raises UserError if these exceed the limit of tokens."""
    end = num_tokens = 0
    for _ in range(most):
        tokens, position = sgf_grammar.tokenise(data, end)
        if not tokens:
            break
        end, num_tokens = position, num_tokens + len(tokens)
        limits.check(num_tokens, limits.MAX_FIRST_TOKENS, f"tokens in its first {most} games", "split the file")
    return data[:end]


def _depth(tree: sgf_grammar.Coarse_game_tree) -> int:
    """Returns how deep the variations of a game are nested."""
    depth, level = 0, tree.children
    while level:
        depth, level = depth + 1, [child for each in level for child in each.children]
    return depth


def _read_tree(tree: sgf_grammar.Coarse_game_tree, board: str) -> GameRecord:
    """Reads the main variation of a game."""
    limits.check(_depth(tree), limits.MAX_DEPTH, "levels of nested variations", "remove it, or its variations")
    nodes: list[dict[str, list[bytes]]] = list(sgf_grammar.main_sequence_iter(tree))
    limits.check(len(nodes), limits.MAX_MOVES, "nodes in its main line", "remove it")

    def value(name: str) -> str:
        return sgf_grammar.text_value(nodes[0].get(name, [b""])[0]).decode(errors="replace")

    board = _board_of(value, board)
    game = make_game(board)
    if any({"AB", "AW", "AE"} & node.keys() for node in nodes):
        raise UserError("it starts from placed stones or changes some later (AB, AW, AE); remove it")
    result, _, reason = value("RE").partition("+")
    reason = reason[:1].upper()
    moves = [(player, node["BW"[player]][0]) for node in nodes for player in (0, 1) if "BW"[player] in node]
    if isinstance(game, OthelloGame):
        moves = _with_passes(moves)
    return GameRecord(
        board=board,
        names=(value("PB"), value("PW")),
        moves=tuple(_move(game, sgf_grammar.simpletext_value(point).decode(errors="replace")) for _, point in moves),
        players=tuple(player for player, _ in moves),
        outcome=RESULTS.get(result.strip().upper()),
        # A comment (GC) of another program is not a forfeit reason.
        forfeit={"R": "resigned", "T": "timed out"}.get(reason) or (value("GC") or "forfeit") * (reason == "F"),
    )


def _with_passes(moves: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Adds the passes that a file omits: between two moves of one player, the opponent passed."""
    complete = moves[:1]
    for move in moves[1:]:
        if move[0] == complete[-1][0]:
            complete.append((1 - move[0], b"pass"))
        complete.append(move)
    return complete


def _board_of(value: Callable[[str], str], board: str) -> str:
    """Returns the board named in the root node, else `board`, unless the root describes another one.

    Raises:
      UserError: the root names and describes no board, or contradicts itself.
    """
    if _is_board(named := value("GN")):
        board = named
    elif not _is_board(board) or _contradiction(value, board):
        board = _described(value) or board
    if not _is_board(board):
        raise UserError(f"it names no board (GN is {named[:40]!r}); add one, such as GN[hex:5]")
    if contradiction := _contradiction(value, board):
        raise UserError(contradiction)
    return board


def _described(value: Callable[[str], str]) -> str:
    """Returns the board that the game, size and komi of a root node describe; empty if they describe none."""
    family, size = FAMILIES.get(value("GM"), ""), value("SZ")
    boards = [f"{family}:{size}"]
    if family == "go" and _is_board(boards[0]) and (komi := _number(value("KM"))) is not None:
        boards.insert(0, name_of(int(size), komi))
    return next(filter(_is_board, boards), "")


def _contradiction(value: Callable[[str], str], board: str) -> str:
    """Returns how the game, size or komi of a root node contradict a board; empty if they do not."""
    family, *arguments = board.split(":")
    numbers = {str(NUMBERS.get(family, 0)), "0", ""}
    number, size, komi = value("GM"), value("SZ"), value("KM")
    if number not in numbers or (_size(arguments) and size not in (_size(arguments), "")):
        said = f"GM is {number[:40]!r}, SZ is {size[:40]!r}"
        return f"it is on another board than {board}: {said}; name its board in GN, or remove it"
    game = make_game(board)
    if not isinstance(game, GoGame) or not komi.strip() or _number(komi) == game.komi:
        return ""
    named = "" if _number(komi) is None else name_of(game.size, float(komi))
    fix = f"name its board, GN[{named}], or remove it" if _is_board(named) else "remove it"
    return f"its komi (KM) is {komi[:40]!r}, and that of {game.name} is {game.komi:g}; {fix}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _is_board(name: str) -> bool:
    try:
        make_game(name)
    except UserError:
        return False
    return True


def _size(arguments: list[str]) -> str:
    return next((word for word in arguments if word.isdigit()), "")


def _result(record: GameRecord) -> str:
    if not record.outcome:
        return "?" if record.outcome is None else "0"
    reason = {"": "", "resigned": "R", "timed out": "T"}.get(record.forfeit, "F")
    return ("B" if record.outcome > 0 else "W") + "+" + reason


def _point(game: Game, move: str) -> str:
    """Returns a Go move in SGF: column and row from the top, both from `a`; empty for a pass."""
    if not isinstance(game, GoGame):
        return move
    point = game.action_names.index(move)
    return "" if move == "pass" else "".join(ascii_lowercase[i] for i in reversed(divmod(point, game.size)))


def _move(game: Game, point: str) -> str:
    """Returns the action name of a move; the inverse of `_point`."""
    if isinstance(game, HexGame | OthelloGame):
        point = point.lower()  # other programs write D3
    if isinstance(game, HexGame) and point in SWAPS:
        return "swap"
    if isinstance(game, GoGame | OthelloGame) and point == "":
        return "pass"
    if isinstance(game, GoGame):
        return "pass" if point == "tt" and game.size <= 19 else _cell(game, game.size, game.size, point)
    if isinstance(game, MnkGame) and not game.gravity:  # other programs write hh, not h8
        return _cell(game, game.rows, game.columns, point)
    return point


def _cell(game: Game, rows: int, columns: int, point: str) -> str:
    """Returns the name of a cell given as letters of its column and row, from the top."""
    if not re.fullmatch("[a-z]{2}", point):
        return point
    column, row = (ascii_lowercase.index(letter) for letter in point)
    if column >= columns or row >= rows:
        return point  # not an action name: rejected later as illegal
    return game.action_names[row * columns + column]
