"""Limits of game files. Reading a file takes time and memory in proportion to its size, and these bound its size."""

from alphagat.errors import UserError

MAX_BYTES = 32 * 2**20
MAX_GAMES = 100_000
MAX_NODES = 2_000_000  # in all games of a file: nodes of SGF, moves of PGN
MAX_FIRST_TOKENS = 500_000  # of SGF, in the games that are read if not all are
MAX_MOVES = 10_000  # in the main line of a game
MAX_LINE = 65_536  # characters; python-chess copies the rest of a PGN line at each comment
MAX_DEPTH = 1000  # levels of nested variations, in SGF; PGN skips them without keeping any
MAX_BOARDS = 16  # boards that the games of a file name


def check(number: int, limit: int, things: str, fix: str) -> None:
    """Raises UserError if there are more than `limit` things."""
    if number > limit:
        raise UserError(f"it has more than {limit:,} {things}, the limit of game files; {fix}")
