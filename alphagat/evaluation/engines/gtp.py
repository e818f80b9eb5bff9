"""Engines for Go, Othello and Hex that speak GTP, the Go Text Protocol (version 2).

What an engine has to be told about our rules, or differs in:

- Go is scored by area with nothing removed as dead, and a play that repeats a position loses. A `gnugo` that passes too
  early loses by that, so let it play on: `gnugo --mode gtp --chinese-rules --positional-superko --play-out-aftermath
  --capture-all-dead`, and `--never-resign` where all games shall be played to the end. The komi is that of the board.
- Othello is Black to move first with discs on d5 and e4, row 1 at the top. `gtp-rhino` knows 8x8 only. Whoever has to
  pass passes without asking the engine; engines that pass by themselves, as `gtp-rhino`, may refuse to hear of it.
- Hex is Black from top to bottom, a1 at the top left. An engine is never told of a swap, on which engines disagree
  about what happens to the stone: it gets the position after it. It may swap by `swap-pieces`, and is told by MoHex's
  `param_game allow_swap` when.
- A game that reaches the ply cap of the board ends as the board says, and the engine is not told.

Not every engine keeps to its time: GNU Go and `gtp-rhino` play by their level.
"""

import dataclasses
import re
import time
from string import ascii_lowercase

from alphagat.errors import UserError
from alphagat.evaluation.engines.base import Engine, EngineError, Position
from alphagat.evaluation.engines.process import EngineProcess, split_command
from alphagat.games.base import Game
from alphagat.games.go import GoGame
from alphagat.games.hex import HexGame
from alphagat.games.othello import OthelloGame

START_SECONDS = 60.0  # some load a network first
COLOURS = ("black", "white")
SWAPS = ("swap-pieces", "swap")


@dataclasses.dataclass(frozen=True)
class Answer:
    """What an engine said to one command, without the sign and the id before it."""

    is_error: bool
    text: str


class GtpEngine(Engine):
    """One process that plays any number of games in turns."""

    def __init__(self, game: Game, command: str, seconds: float = 1.0, grace: float = 10.0):
        """Starts the engine.

        Args:
          command: with its flags, as in a shell.
          seconds: for a move, where the engine knows about time.
          grace: seconds beyond these before it is killed, and for each command that needs no thought.

        Raises:
          UserError: GTP engines don't play this board, the program is not installed or does not speak GTP, or it
            refuses the size of the board.
        """
        self.name, self._game, self._seconds, self._grace = f"gtp:{command}", game, seconds, grace
        self._setup = _setup_commands(game)
        self._words = split_command(command)
        self._process: EngineProcess | None = None
        self._number, self._known = 0, frozenset()  # of the last command, and of all commands that the engine knows
        self._plays: list[tuple[int, str]] | None = None  # that its board has; None: unknown
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
        """Starts the program and sets it up. Raises EngineError, and then none is left running."""
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
            raise EngineError("refused", f"it answers genmove {colour} by: {answer.text}")
        name = " ".join(answer.text.lower().split()[:1])
        if name == "resign":
            raise EngineError("resigned", f"as {colour}")
        name = "swap" if name in SWAPS else name
        if name not in legal:
            raise EngineError("illegal move", f"it plays {answer.text!r} as {colour}")
        # A swap is in no position's plays: whatever it has done to the engine's board, that is set up anew.
        plays.append((position.player, name))
        return legal[name]

    def _bring_to(self, position: Position) -> list[tuple[int, str]]:
        """Plays on the engine's board what it lacks of the position: all of it where it has another game.

        Returns:
          The plays that the board has then, to be kept up to date.
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
            self._ask(line, self._grace)  # an engine that passes by itself refuses
        else:
            self._order(line)

    def _order(self, line: str) -> None:
        """Gives a command that may not fail. Raises EngineError, "refused", where it does."""
        answer = self._ask(line, self._grace)
        if answer.is_error:
            raise EngineError("refused", f"it answers {line} by: {answer.text}")

    def _ask_if_known(self, line: str) -> None:
        """Gives a command that an engine may as well not know, or refuse."""
        if line.split()[0] in self._known:
            self._ask(line, self._grace)

    def _ask(self, line: str, seconds: float) -> Answer:
        """Gives a command and returns its answer. Raises EngineError, "timed out" or "died"."""
        assert self._process is not None
        self._number += 1
        self._process.send(f"{self._number} {line}")
        return read_answer(self._process, self._number, time.monotonic() + seconds)


def read_answer(process: EngineProcess, number: int, deadline: float) -> Answer:
    """Reads the answer to the command with that id, or to one without an id: some engines leave it out.

    Lines before it, comments (#) and answers to other commands are skipped. It ends with a blank line.

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
            if not line.startswith("#"):
                lines.append(line)
        if head[2] in ("", str(number)):
            return Answer(is_error=head[1] == "?", text="\n".join(lines).strip())


def _cleaned(line: str) -> str:
    """Drops control characters, as the standard asks for, and the spaces around."""
    return re.sub(r"[\x00-\x08\x0a-\x1f\x7f]", "", line.replace("\t", " ")).strip()


def _setup_commands(game: Game) -> tuple[str, ...]:
    """Returns what an engine is told of the board. Raises UserError where GTP has no such game."""
    if isinstance(game, GoGame):
        return f"boardsize {game.size}", f"komi {game.komi:g}"
    if isinstance(game, OthelloGame | HexGame):
        return (f"boardsize {game.size}",)
    raise UserError(f"board {game.name}: GTP engines play Go, Othello and Hex only, e.g. go:9, othello:8 or hex:11")


def _plays_of(position: Position) -> list[tuple[int, str]]:
    """Returns the plays that lead to the position, a swap as the stone that is there after it."""
    plays = list(zip(position.players, position.moves))
    if isinstance(position.game, HexGame) and len(plays) > 1 and plays[1][1] == "swap":
        plays[:2] = [(1, _mirrored(plays[0][1]))]
    return plays


def _mirrored(cell: str) -> str:
    """Returns the cell on the other side of Hex's long diagonal, e.g. `c2` for `b3`."""
    return f"{ascii_lowercase[int(cell[1:]) - 1]}{ascii_lowercase.index(cell[0]) + 1}"
