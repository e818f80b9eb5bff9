"""Game files: PGN for chess, SGF for every other board."""

import dataclasses
import importlib
import io
from collections.abc import Callable
from string import ascii_lowercase
from typing import Any

import numpy as np

from alphagat.errors import UserError
from alphagat.evaluation.match_result import MatchResult
from alphagat.evaluation.move_names import replay
from alphagat.evaluation.openings import Openings
from alphagat.games import make_game
from alphagat.games.base import Game
from alphagat.games.go import GoGame

CHESS = "chess"
PGN_ENDS = ("normal", "adjudication", "unterminated")  # values of Termination that are not forfeits
# Game numbers of SGF (FF[4], property GM); 0 for games without one.
SGF_NUMBERS = {"go": 1, "othello": 2, "gomoku": 4, "hex": 11}


@dataclasses.dataclass(frozen=True)
class GameRecord:
    """One complete game.

    Attributes:
      board: its name.
      names: the names of player 0 and player 1.
      moves: `game.action_name` of each move.
      players: who made each move, 0 or 1.
      outcome: the result for player 0: +1, 0 or -1; None if unknown.
      forfeit: the reason of a loss other than by the rules; else empty.
    """

    board: str
    names: tuple[str, str]
    moves: tuple[str, ...]
    players: tuple[int, ...]
    outcome: int | None
    forfeit: str = ""


def records_of(game: Game, names: tuple[str, str], openings: Openings, result: MatchResult) -> list[GameRecord]:
    """Returns the records of a match; the two games of an opening are adjacent."""
    records = []
    for colour in range(2):
        histories = replay(game, np.concatenate([openings.actions, result.actions[colour]], axis=1))
        for row, history in enumerate(histories):
            records.append(
                GameRecord(
                    board=game.name,
                    names=(names[colour], names[1 - colour]),
                    moves=tuple(history.moves),
                    players=tuple(history.players),
                    outcome=int(np.sign(result.outcomes[colour, row])) * (1, -1)[colour],
                    forfeit=str(result.forfeits[colour, row]),
                )
            )
    half = len(records) // 2
    return [records[colour * half + row] for row in range(half) for colour in range(2)]


def file_ending(game: Game) -> str:
    return ".pgn" if game.name == CHESS else ".sgf"


def to_text(record: GameRecord) -> str:
    """Returns one game as PGN (chess) or SGF; a file is a concatenation of games.

    Raises:
      UserError: the package for this format is not installed.
    """
    return _to_pgn(record) if record.board == CHESS else _to_sgf(record)


def read_games(text: str, board: str = "") -> list[GameRecord]:
    """Reads games written by `to_text` or another program.

    Args:
      board: the board of games whose file does not name one; `to_text` always does.

    Raises:
      UserError: the text is neither PGN nor SGF, a board is unknown, or the package for the format is not installed.
    """
    return _read_pgn(text) if text.lstrip().startswith("[") else _read_sgf(text, board)


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise UserError(
            f"game files need {package}, which is not installed: pip install 'alphagat[engines]'"
        ) from error


def _to_sgf(record: GameRecord) -> str:
    """Writes FF[4]; moves are SGF points in Go and `action_name` in other games."""
    grammar = _import("sgfmill.sgf_grammar")
    family, *arguments = record.board.split(":")
    size = next((word for word in arguments if word.isdigit()), "")
    root = {
        "FF": "4",
        "GM": str(SGF_NUMBERS.get(family, 0)),
        "CA": "UTF-8",
        "AP": "AlphaGAT",
        "SZ": size,
        "GN": record.board,
        "PB": record.names[0],
        "PW": record.names[1],
        "RE": _sgf_result(record),
        "GC": record.forfeit,
    }
    if isinstance(game := make_game(record.board), GoGame):
        root |= {"RU": "Tromp-Taylor", "KM": f"{game.komi:g}"}
    nodes = [{name: [grammar.escape_text(value.encode())] for name, value in root.items() if value}]
    for move, player in zip(record.moves, record.players):
        nodes.append({"BW"[player]: [_sgf_move(record.board, move).encode()]})
    tree = grammar.Coarse_game_tree()
    tree.sequence = nodes
    return grammar.serialise_game_tree(tree).decode()


def _sgf_result(record: GameRecord) -> str:
    if not record.outcome:
        return "?" if record.outcome is None else "0"
    reason = {"": "", "resigned": "R", "timed out": "T"}.get(record.forfeit, "F")
    return ("B" if record.outcome > 0 else "W") + "+" + reason


def _sgf_move(board: str, move: str) -> str:
    """Returns a Go move in SGF: column and row from the top, both from `a`; empty for a pass."""
    game = make_game(board)
    if not isinstance(game, GoGame):
        return move
    point = game.action_names.index(move)
    return "" if move == "pass" else "".join(ascii_lowercase[i] for i in reversed(divmod(point, game.size)))


def _from_sgf_move(board: str, move: str) -> str:
    game = make_game(board)
    if not isinstance(game, GoGame):
        return move
    if move == "" or (move == "tt" and game.size <= 19):
        return "pass"
    columns = ascii_lowercase[: game.size]
    if len(move) != 2 or not set(move) <= set(columns):
        return move  # not an action name: rejected later as illegal
    column, row = (columns.index(letter) for letter in move)
    return game.action_names[row * game.size + column]


def _read_sgf(text: str, board: str) -> list[GameRecord]:
    grammar = _import("sgfmill.sgf_grammar")
    try:
        trees = grammar.parse_sgf_collection(text.encode())
    except ValueError as error:
        raise UserError(f"this is neither PGN nor SGF: {error}") from error
    records = []
    for number, tree in enumerate(trees, 1):
        try:
            records.append(_read_tree(grammar, tree, board))
        except UserError as error:
            raise UserError(f"game {number}: {error}") from error
    return records


def _read_tree(grammar: Any, tree: Any, board: str) -> GameRecord:
    """Reads the main variation of a game."""
    nodes = list(grammar.main_sequence_iter(tree))

    def value(name: str) -> str:
        return grammar.text_value(nodes[0].get(name, [b""])[0]).decode(errors="replace")

    board = _board_of(value, board)
    if {"AB", "AW", "AE"} & nodes[0].keys():
        raise UserError("it starts from placed stones (AB, AW, AE), not from the initial position; remove it")
    result, _, reason = value("RE").partition("+")
    reason = reason[:1].upper()
    moves = [(player, node["BW"[player]][0].decode()) for node in nodes for player in (0, 1) if "BW"[player] in node]
    return GameRecord(
        board=board,
        names=(value("PB"), value("PW")),
        moves=tuple(_from_sgf_move(board, move) for _, move in moves),
        players=tuple(player for player, _ in moves),
        outcome={"B": 1, "W": -1, "0": 0, "DRAW": 0, "JIGO": 0}.get(result.strip().upper()),
        # A comment (GC) of another program is not a forfeit reason.
        forfeit={"R": "resigned", "T": "timed out"}.get(reason) or (value("GC") or "forfeit") * (reason == "F"),
    )


def _board_of(value: Callable[[str], str], board: str) -> str:
    """Returns the board named in the root node, or `board` if the root does not contradict it."""
    if _is_board(named := value("GN")):
        return named
    if not _is_board(board):
        raise UserError(f"it names no board (GN is {named!r}); add one, such as GN[hex:5]")
    family, *arguments = board.split(":")
    size = next((word for word in arguments if word.isdigit()), "")
    numbers = {str(SGF_NUMBERS.get(family, 0)), "0", ""}
    if value("GM") not in numbers or (size and value("SZ") not in (size, "")):
        raise UserError(f"it is on another board than {board}: GM is {value('GM')}, SZ is {value('SZ')!r}")
    return board


def _is_board(name: str) -> bool:
    try:
        make_game(name)
    except UserError:
        return False
    return True


def _to_pgn(record: GameRecord) -> str:
    chess, pgn = _import("chess"), _import("chess.pgn")
    game = pgn.Game()
    result = {1: "1-0", 0: "1/2-1/2", -1: "0-1", None: "*"}[record.outcome]
    game.headers.update(Event="AlphaGAT", White=record.names[0], Black=record.names[1], Result=result)
    for tag in ("Site", "Date", "Round"):
        game.headers[tag] = "?"
    if record.forfeit:
        game.headers["Termination"] = record.forfeit
    node = game
    for move in record.moves:
        node = node.add_main_variation(chess.Move.from_uci(move))
    return f"{game}\n\n"


def _read_pgn(text: str) -> list[GameRecord]:
    pgn = _import("chess.pgn")
    stream, records = io.StringIO(text), []
    while (game := pgn.read_game(stream)) is not None:
        if game.errors:
            raise UserError(f"game {len(records) + 1}: {game.errors[0]}")
        moves = tuple(move.uci() for move in game.mainline_moves())
        headers = game.headers
        if "FEN" in headers:
            raise UserError(f"game {len(records) + 1}: it starts from a FEN, not from the initial position; remove it")
        end = headers.get("Termination", "")
        records.append(
            GameRecord(
                board=CHESS,
                names=(headers.get("White", ""), headers.get("Black", "")),
                moves=moves,
                players=tuple(ply % 2 for ply in range(len(moves))),
                outcome={"1-0": 1, "1/2-1/2": 0, "0-1": -1}.get(headers.get("Result", "")),
                forfeit="" if end.lower() in PGN_ENDS else end,
            )
        )
    return records
