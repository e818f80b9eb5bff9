"""PGN, the format of chess games, by python-chess."""

import io
import re

import chess
import chess.pgn

from alphagat.errors import UserError
from alphagat.evaluation.engines.base import FORFEITS
from alphagat.evaluation.game_formats import limits
from alphagat.evaluation.game_formats.record import GameRecord

BOARD = "chess"
STANDARD = ("standard", "chess", "classical", "normal", "from position")  # values of Variant that are chess
# Values of Termination that are forfeits: of the PGN standard, cutechess-cli, chess.com and this package.
OTHER_FORFEITS = (
    "time forfeit",
    "rules infraction",
    "abandoned",
    "death",
    "emergency",
    "stalled connection",
    ".* on time",
    ".* abandoned",
)
FORFEIT = re.compile("|".join((*FORFEITS, *OTHER_FORFEITS)), re.IGNORECASE)
OUTCOMES = {"1-0": 1, "1/2-1/2": 0, "0-1": -1, "*": None}


def write(record: GameRecord) -> str:
    """Returns one game as PGN; a file is a concatenation of games."""
    game = chess.pgn.Game()
    result = next(text for text, outcome in OUTCOMES.items() if outcome == record.outcome)
    # A tag is one line, and its quotes and backslashes are escaped.
    white, black, forfeit = (
        re.sub(r'(["\\])', r"\\\1", " ".join(text.splitlines())) for text in (*record.names, record.forfeit)
    )
    game.headers.update(Event="AlphaGAT", White=white, Black=black, Result=result)
    game.headers.update(Site="?", Date="????.??.??", Round="?")
    if forfeit:
        game.headers["Termination"] = forfeit
    node = game
    for move in record.moves:
        node = node.add_main_variation(chess.Move.from_uci(move))
    return f"{game}\n\n"


def read(text: str, most: int | None = None) -> list[GameRecord]:
    """Reads the main lines of the first `most` games; None: of all.

    Raises:
      UserError: a move is illegal, a game is not chess from the initial position, or the file exceeds a limit.
    """
    stream, records, num_moves = io.StringIO(text, newline=None), [], 0
    for number, line in enumerate(stream, 1):
        limits.check(len(line), limits.MAX_LINE, f"characters in line {number}", "wrap the line")
    stream.seek(0)
    while len(records) != most and (record := _read_game(stream, len(records) + 1)) is not None:
        records.append(record)
        num_moves += len(record.moves)
        limits.check(len(records), limits.MAX_GAMES, "games", "split the file")
        limits.check(num_moves, limits.MAX_NODES, "moves", "split the file")
    return records


def _read_game(stream: io.StringIO, number: int) -> GameRecord | None:
    try:
        return chess.pgn.read_game(stream, Visitor=_MainLine)
    except UserError as error:
        raise UserError(f"game {number}: {error}") from error
    except Exception as error:  # python-chess raises many kinds on damaged text
        raise UserError(f"game {number}: it is damaged ({type(error).__name__} in python-chess); remove it") from error


class _MainLine(chess.pgn.BaseVisitor[GameRecord]):
    """Collects the headers and the main line of a game, and skips its variations."""

    def begin_game(self) -> None:
        self._headers, self._moves, self._result = {}, [], "*"

    def visit_header(self, tagname: str, tagvalue: str) -> None:
        self._headers[tagname] = re.sub(r'\\(["\\])', r"\1", tagvalue)

    def end_headers(self) -> None:
        variant = self._headers.get("Variant", STANDARD[0])
        if variant.lower() not in STANDARD:
            raise UserError(f"its variant is {variant[:40]!r}, not chess; remove it")
        if self._headers.get("FEN", chess.STARTING_FEN).strip() != chess.STARTING_FEN:
            raise UserError("it starts from a FEN, not from the initial position; remove it")

    def begin_variation(self) -> chess.pgn.SkipType:
        return chess.pgn.SKIP

    def visit_move(self, board: chess.Board, move: chess.Move) -> None:
        self._moves.append(move.uci())
        limits.check(len(self._moves), limits.MAX_MOVES, "moves", "remove it")

    def visit_result(self, result: str) -> None:
        self._result = result

    def handle_error(self, error: Exception) -> None:
        raise UserError(f"{error}; remove it") from error

    def result(self) -> GameRecord:
        headers = self._headers
        outcome = OUTCOMES.get(headers.get("Result", "*"))
        end = headers.get("Termination", "")
        end = end.lower() if end.lower() in FORFEITS else end  # programs spell it differently
        return GameRecord(
            board=BOARD,
            names=(headers.get("White", "?"), headers.get("Black", "?")),
            moves=tuple(self._moves),
            players=tuple(ply % 2 for ply in range(len(self._moves))),
            outcome=OUTCOMES[self._result] if outcome is None else outcome,
            forfeit=end if FORFEIT.fullmatch(end) else "",
        )
