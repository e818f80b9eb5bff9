"""Engines for Go, Othello and Hex that speak GTP, the Go Text Protocol (version 2).

Rules and conventions:

- Go: area scoring without removal of dead stones; repeating a position loses. GNU Go must therefore play on until all
  dead stones are captured: `gnugo --mode gtp --chinese-rules --positional-superko --play-out-aftermath
  --capture-all-dead`; add `--never-resign` for complete games. The komi is that of the board.
- Othello: Black moves first and owns d5 and e4; row 1 is at the top. `gtp-rhino` supports 8x8 only. Forced passes are
  played without asking the engine; engines that pass automatically, such as `gtp-rhino`, may reject them.
- Hex: Black connects top and bottom; a1 is at the top left. Engines disagree about the place of the stone
  after a swap, so they receive the resulting stones instead of the swap. An engine may swap by `swap-pieces`; MoHex's
  `param_game allow_swap` enables it.
- The engine is not informed if a game is truncated at the ply cap of the board.

GTP's time commands take whole seconds, so the time per move is rounded, to at least one second; MoHex also gets it
unrounded. Not every engine respects its time limit. `gtp-rhino` plays at its level only. GNU Go fits its level to the
limit, up to `--max-level` (10), whatever its `--level` is; for a lower level, set both.
"""

import dataclasses
import re
import time

from alphagat.errors import UserError
from alphagat.evaluation.engines.base import Engine, EngineError, in_one_line
from alphagat.evaluation.engines.process import MAX_WAITING_LINES, START_SECONDS, EngineProcess, split_command
from alphagat.evaluation.live_game import Position
from alphagat.games.base import Game
from alphagat.games.go import GoGame
from alphagat.games.hex import SWAPS, HexGame, mirrored
from alphagat.games.othello import OthelloGame

COLOURS = ("black", "white")


@dataclasses.dataclass(frozen=True)
class Answer:
    """An engine's response to one command, without status and id."""

    is_error: bool
    text: str


class GtpEngine(Engine):
    """One process that plays any number of interleaved games."""

    def __init__(self, game: Game, command: str, seconds: float = 1.0, grace: float = 10.0):
        """Starts the engine.

        Args:
          command: a shell command with flags.
          seconds: time per move, if the engine supports time control; rounded as above.
          grace: extra seconds before the engine is killed; also the time limit for commands other than moves.

        Raises:
          UserError: no GTP engine plays this board, the program is not installed or does not speak GTP, or it
            rejects the board size.
        """
        self.name, self._game, self._seconds, self._grace = f"gtp:{command}", game, seconds, grace
        self._setup = _setup_commands(game)
        self._words = split_command(command)
        self._process: EngineProcess | None = None
        self._number, self._known = 0, frozenset()  # id of the last command; commands the engine supports
        self._plays: list[tuple[int, str]] | None = None  # on the engine's board; None: unknown
        try:
            self._start()
        except EngineError as error:
            raise UserError(f"engine {command!r} does not play {game.name}: {error}") from error

    def choose(self, position: Position) -> int:
        legal = position.legal_actions()
        if list(legal) == ["pass"]:
            return legal["pass"]
        try:
            if self._process is None:
                self._start()
            return self._choose(position, legal)
        except EngineError as error:
            self._plays = None
            if error.end in ("died", "timed out"):
                self.close()
            raise

    def close(self) -> None:
        if self._process is not None:
            self._process.close("quit")
            self._process = None

    def _start(self) -> None:
        """Starts and configures the program. Raises EngineError; the program is then closed."""
        self._process = EngineProcess(self._words)
        try:
            known = self._ask("list_commands", START_SECONDS)
            self._known = frozenset() if known.is_error else frozenset(known.text.split())
            for line in self._setup:
                self._order(line)
            self._ask_if_known(f"time_settings 0 {max(1, round(self._seconds))} 1")
            self._ask_if_known(f"param_mohex max_time {self._seconds:g}")
        except EngineError:
            self.close()
            raise

    def _choose(self, position: Position, legal: dict[str, int]) -> int:
        plays = self._bring_to(position)
        colour = COLOURS[position.player]
        self._ask_if_known(f"time_left {colour} {max(1, round(self._seconds))} 1")
        if isinstance(self._game, HexGame) and self._game.swap:
            self._ask_if_known(f"param_game allow_swap {int('swap' in legal)}")
        answer = self._ask(f"genmove {colour}", self._seconds + self._grace)
        if answer.is_error:
            raise EngineError("refused", f"it answered genmove {colour} with: {in_one_line(answer.text)}")
        name = " ".join(answer.text.lower().split()[:1])
        if name == "resign":
            raise EngineError("resigned", f"as {colour}")
        name = "swap" if name in SWAPS else name
        if name not in legal:
            raise EngineError("illegal move", f"it plays {in_one_line(answer.text)!r} as {colour}")
        # The plays of a position never contain a swap, so after a swap the engine's board is set up from scratch.
        plays.append((position.player, name))
        return legal[name]

    def _bring_to(self, position: Position) -> list[tuple[int, str]]:
        """Brings the engine's board to the position, from an empty board if it holds a different game.

        Returns:
          The list of plays on the engine's board, which the caller extends.
        """
        wanted = _plays_of(position)
        if self._plays is None or wanted[: len(self._plays)] != self._plays:
            self._plays = None
            self._order("clear_board")
            self._plays = []
        for player, name in wanted[len(self._plays) :]:
            self._play(player, name)
            self._plays.append((player, name))
        return self._plays

    def _play(self, player: int, name: str) -> None:
        line = f"play {COLOURS[player]} {name}"
        if isinstance(self._game, OthelloGame) and name == "pass":
            self._ask(line, self._grace)  # engines that pass automatically reject it
        else:
            self._order(line)

    def _order(self, line: str) -> None:
        """Sends a command that must succeed. Raises EngineError, "refused", if it fails."""
        answer = self._ask(line, self._grace)
        if answer.is_error:
            raise EngineError("refused", f"it answered {line} with: {in_one_line(answer.text)}")

    def _ask_if_known(self, line: str) -> None:
        """Sends an optional command and ignores failure."""
        if line.split()[0] in self._known:
            self._ask(line, self._grace)

    def _ask(self, line: str, seconds: float) -> Answer:
        """Sends a command and returns its answer. Raises EngineError, "timed out" or "died"."""
        assert self._process is not None
        self._number += 1
        self._process.send(f"{self._number} {line}")
        return read_answer(self._process, self._number, time.monotonic() + seconds)


def read_answer(process: EngineProcess, number: int, deadline: float) -> Answer:
    """Reads the answer to command `number`; accepts a missing id, because some engines omit it.

    Skips preceding lines, comments (#) and answers to other commands. A blank line ends an answer.

    Args:
      deadline: by `time.monotonic()`.

    Raises:
      EngineError: "timed out" or "died".
    """
    while True:
        head = re.fullmatch(r"([=?])(\d*)(.*)", _cleaned(process.read_line(deadline)))
        if head is None:
            continue
        lines = [head[3]]
        while line := _cleaned(process.read_line(deadline)):
            if not line.startswith("#") and len(lines) < MAX_WAITING_LINES:
                lines.append(line)
        if head[2] in ("", str(number)):
            return Answer(is_error=head[1] == "?", text="\n".join(lines).strip())


def _cleaned(line: str) -> str:
    """Removes control characters and surrounding whitespace; tabs become spaces."""
    return without_controls(line).replace("\t", " ").strip()


def without_controls(line: str) -> str:
    """Removes control characters except tabs, as the standard requires."""
    return re.sub(r"[\x00-\x08\x0a-\x1f\x7f]", "", line)


def _setup_commands(game: Game) -> tuple[str, ...]:
    """Returns the setup commands of a board. Raises UserError if GTP does not support the game."""
    if isinstance(game, GoGame):
        return f"boardsize {game.size}", f"komi {game.komi:g}"
    if isinstance(game, OthelloGame | HexGame):
        return (f"boardsize {game.size}",)
    raise UserError(f"board {game.name}: GTP engines play Go, Othello and Hex only, e.g. go:9, othello:8 or hex:11")


def _plays_of(position: Position) -> list[tuple[int, str]]:
    """Returns the plays that lead to the position; a swap becomes the resulting stone."""
    plays = list(zip(position.players, position.moves))
    if isinstance(position.game, HexGame) and len(plays) > 1 and plays[1][1] == "swap":
        plays[:2] = [(1, mirrored(plays[0][1]))]
    return plays
