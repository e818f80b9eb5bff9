"""Chess engines that speak UCI, through the package `chess` (python-chess).

Our chess draws a third repetition, 50 moves and what cannot be won, without anybody's claim, and any game after 512
plies; an engine is never asked about such a position. UCI has no way to resign.
"""

import asyncio
import collections
import contextlib
import functools
import importlib
import logging
import threading
import weakref
from collections.abc import Coroutine, Mapping
from typing import Any

from alphagat.errors import UserError
from alphagat.evaluation.engines.base import Engine, EngineError, Position, last_lines
from alphagat.evaluation.engines.process import EXIT_SECONDS, NUM_KEPT_LINES, describe_exit, kill_group, split_command
from alphagat.games.base import Game

START_SECONDS = 60.0
NODES_SECONDS = 600.0  # for a move that is limited by nodes: what takes longer hangs


class UciEngine(Engine):
    """One process that plays any number of games in turns.

    It hears `ucinewgame` whenever it gets a position that does not follow from the one before.
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
          command: with its flags, as in a shell.
          seconds: for a move.
          nodes: of the search for a move, instead of `seconds`.
          options: of the engine, by name, e.g. `{"Skill Level": "0"}`.
          grace: seconds beyond `seconds` before it is killed.

        Raises:
          UserError: the board is not chess, the package or the program is not installed, the program does not speak
            UCI, or there is no such option or value.
        """
        if game.name != "chess":
            raise UserError(f"board {game.name}: UCI engines play chess only")
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
            raise UserError(f"engine {command!r} does not play chess: {error}") from error

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
        """Starts the program and sets its options. Raises EngineError, and then none is left running."""
        self._process = _UciProcess(self._chess, self._words)
        protocol = self._process.protocol
        try:
            for request in (protocol.initialize, lambda: protocol.configure(self._options), protocol.ping):
                self._process.wait_for(request(), START_SECONDS)
        except EngineError:
            self.close()
            raise
        except self._chess.engine.EngineError as error:
            self.close()
            raise EngineError("refused", str(error)) from error

    def _choose(self, position: Position) -> int:
        assert self._process is not None
        if position.moves[: len(self._moves)] != self._moves:
            self._game_number += 1
        self._moves = position.moves
        board = self._chess.Board()
        for move in position.moves:
            board.push_uci(move)
        search = self._process.protocol.play(board, self._limit, game=self._game_number)
        try:
            move = self._process.wait_for(search, self._patience).move
        except self._chess.engine.EngineError as error:
            raise EngineError("illegal move", f"{error}; it said last: {self._process.last_said()}") from error
        name, legal = "no move" if move is None else move.uci(), position.legal_actions()
        if name not in legal:
            raise EngineError("illegal move", f"it plays {name}; it said last: {self._process.last_said()}")
        return legal[name]


class _UciProcess:
    """One running program, which python-chess speaks to on a thread of its own: a notebook's thread has a loop already.

    Its stdin is a pipe, or like one: when this process dies, even by SIGKILL, it reads the end of file.
    """

    def __init__(self, chess: Any, words: list[str]):
        """Starts the program. Raises EngineError, "died", where the system refuses that."""
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
        """Returns the result of what the engine is asked.

        Raises:
          EngineError: "timed out" or "died".
          chess.engine.EngineError: python-chess found its answer wrong.
        """
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(seconds)
        except TimeoutError:
            future.cancel()
            raise EngineError("timed out", f"no answer in time; it said last: {self.last_said()}") from None
        except self._terminated as error:
            how = describe_exit(self._transport.get_returncode())
            raise EngineError("died", f"it {how}; it said last: {self.last_said()}") from error

    def last_said(self) -> str:
        """Returns the last lines of its stdout and stderr in one."""
        return last_lines(tuple(self._said))

    def close(self) -> None:
        """Ends the program, by killing it where `quit` does not end it within a second; harmless when repeated."""
        self._end()


@functools.cache
def _import_chess() -> Any:
    try:
        importlib.import_module("chess.engine")
    except ImportError as error:
        raise UserError("UCI engines need chess, which is not installed: pip install 'alphagat[engines]'") from error
    # What an engine says beside the protocol would else be printed in the middle of a match.
    logging.getLogger("chess.engine").addHandler(logging.NullHandler())
    return importlib.import_module("chess")


def _listening_protocol(chess: Any, said: collections.deque[str]) -> Any:
    """Returns python-chess' side of UCI as a class that keeps what the engine says in `said`."""

    class ListeningProtocol(chess.engine.UciProtocol):
        def line_received(self, line: str) -> None:
            said.append(line)

        def error_line_received(self, line: str) -> None:
            said.append(line)

    return ListeningProtocol


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread, transport: Any, protocol: Any) -> None:
    """Ends the program and then the thread that speaks to it."""

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
