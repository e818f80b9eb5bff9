"""Engines that speak UCI, through the package `chess` (python-chess).

Gardner chess and Breakthrough 8x8 need an engine with the option `UCI_Variant`, such as Fairy-Stockfish. In chess,
threefold repetition, the 50-move rule and insufficient material end a game without a claim, and so do 512 plies; an
engine never receives such a position. UCI has no command to resign.
"""

import asyncio
import collections
import contextlib
import functools
import importlib
import logging
import threading
import weakref
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from alphagat.errors import UserError
from alphagat.evaluation.engines.base import Engine, EngineError, in_one_line, last_lines
from alphagat.evaluation.engines.process import (
    EXIT_SECONDS,
    MAX_LINE_BYTES,
    NUM_KEPT_LINES,
    START_SECONDS,
    describe_exit,
    kill_group,
    split_command,
)
from alphagat.evaluation.live_game import Position
from alphagat.games.base import Game

NODES_SECONDS = 600.0  # timeout of a move limited by nodes


class UciEngine(Engine):
    """One process that plays any number of interleaved games.

    It receives `ucinewgame` before a position that does not continue the previous one.
    """

    def __init__(
        self,
        game: Game,
        command: str,
        seconds: float = 1.0,
        nodes: int | None = None,
        options: Mapping[str, str] | None = None,
        grace: float = 10.0,
    ):
        """Starts the engine.

        Args:
          command: a shell command with flags.
          seconds: time per move.
          nodes: search nodes per move, instead of `seconds`.
          options: UCI options by name, e.g. `{"Skill Level": "0"}`.
          grace: extra seconds before the engine is killed.

        Raises:
          UserError: UCI engines, or this one, do not play the board, the package or the program is not installed, the
            program does not speak UCI, or it rejects an option.
        """
        if game.name not in BOARDS:
            raise UserError(f"board {game.name}: UCI engines play only {', '.join(BOARDS)}")
        self._board = game.name
        self._chess = _import_chess()
        self.name = f"uci:{command}"
        self._limit = self._chess.engine.Limit(time=None if nodes else seconds, nodes=nodes)
        self._patience = NODES_SECONDS if nodes else seconds + grace
        self._words, self._options = split_command(command), dict(options or {})
        self._process: _UciProcess | None = None
        self._game_number, self._moves = 0, ()
        try:
            self._start()
        except EngineError as error:
            raise UserError(f"engine {command!r} does not play {game.name}: {error}") from error

    def choose(self, position: Position) -> int:
        try:
            if self._process is None:
                self._start()
            return self._choose(position)
        except EngineError as error:
            if error.end in ("died", "timed out"):
                self.close()
            raise

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None

    def _start(self) -> None:
        """Starts and configures the program. Raises EngineError; the program is then closed."""
        self._process = _UciProcess(self._chess, self._words)
        protocol = self._process.protocol
        try:
            self._process.wait_for(protocol.initialize(), START_SECONDS)
            self._check_variant(protocol.options)
            self._process.wait_for(protocol.configure(self._options), START_SECONDS)
            self._process.wait_for(protocol.ping(), START_SECONDS)
        except EngineError:
            self.close()
            raise
        except self._chess.engine.EngineError as error:
            self.close()
            raise EngineError("refused", in_one_line(str(error))) from error

    def _check_variant(self, options: Mapping[str, Any]) -> None:
        """Raises EngineError if the board is a variant that the program does not offer."""
        if self._board not in VARIANTS:
            return
        name, option = VARIANTS[self._board].uci_variant, options.get("UCI_Variant")
        if option is None or name not in option.var:
            raise EngineError("refused", f"its options do not include UCI_Variant {name}")

    def _empty_board(self) -> Any:
        return VARIANTS[self._board](self._chess) if self._board in VARIANTS else self._chess.Board()

    def _choose(self, position: Position) -> int:
        assert self._process is not None
        if position.moves[: len(self._moves)] != self._moves:
            self._game_number += 1
        self._moves = position.moves
        board = self._empty_board()
        for move in position.moves:
            board.push(self._chess.Move.from_uci(move))  # without a second check of its legality, which is slow
        search = self._process.protocol.play(board, self._limit, game=self._game_number)
        try:
            move = self._process.wait_for(search, self._patience).move
        except self._chess.engine.EngineError as error:
            message = f"{in_one_line(str(error))}; its last output: {self._process.last_said()}"
            raise EngineError("illegal move", message) from error
        name, legal = "no move" if move is None else move.uci(), position.legal_actions()
        if name not in legal:
            raise EngineError("illegal move", f"it plays {name}; its last output: {self._process.last_said()}")
        return legal[name]


class _VariantBoard:
    """The moves of a game whose rules python-chess does not have. Its protocol reads them like a `chess.Board`.

    Attributes:
      uci_variant: the name of the game in `UCI_Variant`.
      starting_fen: the position before the first move.
      move_stack: the moves made; none is checked.
    """

    uci_variant: str
    starting_fen: str
    chess960 = False

    def __init__(self, chess: Any, moves: Sequence[Any] = ()):
        self._chess, self.move_stack = chess, list(moves)

    def push(self, move: Any) -> None:
        self.move_stack.append(move)

    def push_uci(self, name: str) -> Any:
        """Makes a move and returns it. Raises ValueError unless `name` has the form of one."""
        self.push(self.parse_uci(name))
        return self.move_stack[-1]

    def parse_uci(self, name: str) -> Any:
        return self._chess.Move.from_uci(name)

    def pop(self) -> Any:
        return self.move_stack.pop()

    def root(self) -> "_VariantBoard":
        return type(self)(self._chess)

    def copy(self, *, stack: bool) -> "_VariantBoard":
        return type(self)(self._chess, self.move_stack if stack else ())

    def fen(self, **_: object) -> str:
        return self.starting_fen


class _GardnerBoard(_VariantBoard):
    uci_variant = "gardner"
    starting_fen = "rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1"


class _BreakthroughBoard(_VariantBoard):
    uci_variant = "breakthrough"
    starting_fen = "pppppppp/pppppppp/8/8/8/8/PPPPPPPP/PPPPPPPP w - - 0 1"


VARIANTS: Mapping[str, type[_VariantBoard]] = {"gardner_chess": _GardnerBoard, "breakthrough:8": _BreakthroughBoard}
BOARDS = ("chess", *VARIANTS)


class _UciProcess:
    """One running program; python-chess gets its own thread, because a notebook's thread has an event loop.

    When this process dies, even by SIGKILL, the program reads end of file on stdin.
    """

    def __init__(self, chess: Any, words: list[str]):
        """Starts the program. Raises EngineError, "died", if the system cannot start it."""
        self._terminated = chess.engine.EngineTerminatedError
        self._said: collections.deque[str] = collections.deque(maxlen=NUM_KEPT_LINES)
        self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        start = _listening_protocol(chess, self._said).popen(words, start_new_session=True)
        try:
            self._transport, self.protocol = asyncio.run_coroutine_threadsafe(start, self._loop).result()
        except OSError as error:
            _stop(self._loop, thread)
            raise EngineError("died", f"{words[0]} does not start: {error.strerror}") from error
        self._end = weakref.finalize(self, _end, self._loop, thread, self._transport, self.protocol)

    def wait_for(self, coroutine: Coroutine[Any, Any, Any], seconds: float) -> Any:
        """Runs a request to the engine and returns its result.

        Raises:
          EngineError: "timed out" or "died".
          chess.engine.EngineError: the answer is invalid.
        """
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(seconds)
        except TimeoutError:
            future.cancel()
            raise EngineError("timed out", f"no answer in time; its last output: {self.last_said()}") from None
        except self._terminated as error:
            how = describe_exit(self._transport.get_returncode())
            raise EngineError("died", f"it {how}; its last output: {self.last_said()}") from error

    def last_said(self) -> str:
        """Returns the last lines of stdout and stderr, joined into one line."""
        return last_lines(tuple(self._said))

    def close(self) -> None:
        """Sends `quit`, and kills the program unless it exits within a second; idempotent."""
        self._end()


@functools.cache
def _import_chess() -> Any:
    try:
        importlib.import_module("chess.engine")
    except ImportError as error:
        raise UserError("UCI engines need chess, which is not installed: pip install 'alphagat[engines]'") from error
    # Without a handler, output outside the protocol would be printed during a match.
    logging.getLogger("chess.engine").addHandler(logging.NullHandler())
    return importlib.import_module("chess")


def _listening_protocol(chess: Any, said: collections.deque[str]) -> Any:
    """Returns a `UciProtocol` class that appends the engine's output to `said`, and drops lines without end."""

    class ListeningProtocol(chess.engine.UciProtocol):
        def pipe_data_received(self, fd: int, data: bytes) -> None:
            super().pipe_data_received(fd, data)
            if len(self.buffer[fd]) > MAX_LINE_BYTES:
                self.buffer[fd].clear()

        def line_received(self, line: str) -> None:
            said.append(line)

        def error_line_received(self, line: str) -> None:
            said.append(line)

        def process_exited(self) -> None:
            super().process_exited()
            assert self.transport is not None
            kill_group(self.transport.get_pid())  # its children, at once: later its id may have been reused

    return ListeningProtocol


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread, transport: Any, protocol: Any) -> None:
    """Ends the program, then its thread."""

    async def end() -> None:
        if transport.get_returncode() is None:
            protocol.send_line("quit")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(protocol.returncode), EXIT_SECONDS)
        if transport.get_returncode() is None:
            kill_group(transport.get_pid())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(protocol.returncode), EXIT_SECONDS)
        transport.close()

    asyncio.run_coroutine_threadsafe(end(), loop).result()
    _stop(loop, thread)


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
