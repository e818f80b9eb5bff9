"""A chess engine for UCI, the Universal Chess Interface.

- `go` accepts `nodes`, `movetime`, clock times and `infinite`; without a limit it runs the default number of
  simulations. A node is a simulation, and an `info string` reports a number of nodes above `--max_simulations`.
  `depth`, `mate`, `searchmoves` and pondering are not supported: an `info string` reports that they are ignored.
- `score cp` is 100 tan(pi / 2 value) for the value in [-1, 1] of the player to move. UCI_ShowWDL always
  reports 0 draws, because the network does not predict them; a draw counts as half a win and half a loss.
- After an error in a search, the move is the best of the last report, or if there is none, any legal move.
- `Move Overhead` is the time in milliseconds that a move loses between the engine and the clock. `Hash` and `Threads`
  have no effect; controllers set them unasked.
- A position from FEN has no history, so earlier repetitions do not count.
- The rules of the package end a game at its maximum length, with too little material, and at draws that a player must
  claim elsewhere. If the game goes on, the engine treats that position as the start of a game, without history.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, TextIO

from alphagat.bounds import shown
from alphagat.errors import UserError, internal_error
from alphagat.evaluation.live_game import IllegalMoveError, LiveGame
from alphagat.games import chess_rules
from alphagat.games.chess import MAX_LEGAL_ACTIONS
from alphagat.serving.protocols import fen, move_reports
from alphagat.serving.protocols.clock import LAG_SECONDS, less_lag, seconds_with_increment
from alphagat.serving.protocols.line_reader import MAX_LINE, TOO_LONG, Lines
from alphagat.serving.protocols.thinking import Progress, Thinker

INFO_SECONDS = 1.0
NUMBERS = ("nodes", "movetime", "wtime", "btime", "winc", "binc", "movestogo")
MOST = 10**9  # larger numbers in a command count as this one
IGNORED = ("depth", "mate", "searchmoves", "ponder")
SILENT = ("debug", "register", "ponderhit")  # commands without an effect
NO_MOVE = "bestmove (none)"


class Spin(NamedTuple):
    """An option whose value is a whole number."""

    default: int
    least: int
    most: int


SPINS = {
    "MultiPV": Spin(1, 1, MAX_LEGAL_ACTIONS[fen.SIZE]),
    "Move Overhead": Spin(round(1000 * LAG_SECONDS), 0, 10_000),
    "Hash": Spin(16, 1, 2**25),
    "Threads": Spin(1, 1, 1024),
}
SHOW_WDL = "UCI_ShowWDL"


class UciServer:
    """Plays one game of chess."""

    def __init__(self, thinker: Thinker, simulations: int | None, version: str):
        """Starts a game.

        Args:
          thinker: a player of chess.
          simulations: of `go` without a limit; None: the number set in the run's config.
          version: shown in the engine's name.
        """
        self._thinker, self._version = thinker, version
        simulations = simulations or thinker.agent.config.evaluation.num_simulations
        self._spins = {"Simulations": Spin(simulations, 1, thinker.max_simulations), **SPINS}
        self._values = {name: spin.default for name, spin in self._spins.items()}
        self._shows_wdl = False
        fen.state_from_fen(fen.START)  # compiles, so that no move has to wait for it
        self._game: LiveGame | None = LiveGame(thinker.agent.game)  # None: the last position was invalid
        self._start: str = fen.START
        self._moves: tuple[str, ...] = ()  # from there to the current position
        self._lines: Lines
        self._out: TextIO

    def serve(self, source: TextIO, out: TextIO) -> None:
        """Answers the commands of `source` until `quit` or its end."""
        self._lines, self._out = Lines(source), out
        for line in self._lines:
            command, *words = line.split() or [""]
            if len(line) > MAX_LINE:
                self._say(f"info string {TOO_LONG}")
                continue
            if command == "quit":
                return
            if command == "uci":
                self._introduce()
            elif command == "isready":
                self._say("readyok")
            elif command == "setoption":
                self._set_option(words)
            elif command == "ucinewgame":
                self._thinker.forget()
                self._set_position(fen.START, [])
            elif command == "position":
                self._read_position(words)
            elif command == "go":
                self._go(words)
            elif command not in ("", "stop", *SILENT):
                self._say(f"info string unknown command {command}")

    def _introduce(self) -> None:
        self._say(f"id name AlphaGAT {self._version}")
        self._say("id author the AlphaGAT contributors")
        for name, spin in self._spins.items():
            self._say(f"option name {name} type spin default {spin.default} min {spin.least} max {spin.most}")
        self._say(f"option name {SHOW_WDL} type check default false")
        self._say("uciok")

    def _set_option(self, words: Sequence[str]) -> None:
        match = re.fullmatch("name (.+?)(?: value(?: (.+))?)?", " ".join(words))
        if match is None:
            self._say("info string setoption has no name; write setoption name NAME value VALUE")
            return
        names = {name.lower(): name for name in (*self._spins, SHOW_WDL)}
        name, value = names.get(match[1].lower(), ""), match[2] or ""
        spin = self._spins.get(name)
        valid = "true or false" if spin is None else f"a whole number from {spin.least} to {spin.most}"
        if not name:
            self._say(f"info string there is no option {shown(match[1])}; the options are {', '.join(names.values())}")
        elif not value:
            self._say(f"info string option {name} has no value; give {valid}")
        elif spin and re.fullmatch("[0-9]{1,9}", value) and spin.least <= int(value) <= spin.most:
            self._values[name] = int(value)
        elif spin is None and value in ("true", "false"):
            self._shows_wdl = value == "true"
        else:
            self._say(f"info string option {name}: {shown(value)} is not {valid}")

    def _read_position(self, words: Sequence[str]) -> None:
        split = list(words).index("moves") if "moves" in words else len(words)
        kind, moves = words[:1], words[split + 1 :]
        self._set_position(fen.START if kind == ["startpos"] else " ".join(words[1:split]), moves)

    def _set_position(self, start: str, moves: Sequence[str]) -> None:
        """Plays the new moves, or sets up the position if it does not extend the current game.

        Reports an invalid position and clears the board.
        """
        game, self._game = self._game, None
        try:
            if game is None or start != self._start or tuple(moves[: len(self._moves)]) != self._moves:
                state = None if start == fen.START else fen.state_from_fen(start)
                game, self._moves = LiveGame(self._thinker.agent.game, state), ()
            for move in moves[len(self._moves) :]:
                game.play(move)
                if game.is_over:
                    game = LiveGame(game.game, chess_rules.without_history(game.position.state))
        except (UserError, IllegalMoveError) as error:
            self._say(f"info string invalid position: {error}")
            return
        self._game, self._start, self._moves = game, start, tuple(moves)

    def _go(self, words: Sequence[str]) -> None:
        game, is_infinite = self._game, "infinite" in words
        if game is None or game.is_over:
            self._say(f"info string {'there is no position' if game is None else 'the game is over'}")
            if is_infinite:
                self._is_stopped(is_infinite, wait=True)
            self._say(NO_MOVE)
            return
        limits = self._read_limits(words)
        simulations, seconds = (None, None) if is_infinite else self._budget(limits, game)
        line, stopped = (next(iter(game.position.legal_actions())),), False
        reported_at, last = 0.0, None
        try:
            for progress in self._thinker.think(game.position.state, simulations, seconds):
                last = progress
                if stopped := self._is_stopped(is_infinite):
                    break
                if progress.seconds - reported_at >= INFO_SECONDS:
                    reported_at = progress.seconds
                    line = self._report(game, progress)
            assert last is not None
            line = self._report(game, last)
        except Exception as error:  # one failed search must not lose the game
            self._say(f"info string {internal_error(error)}")
        if is_infinite and not stopped:
            self._is_stopped(is_infinite, wait=True)
        self._say(f"bestmove {line[0]}" + (f" ponder {line[1]}" if len(line) > 1 else ""))

    def _read_limits(self, words: Sequence[str]) -> dict[str, int]:
        for name in IGNORED:
            if name in words:
                self._say(f"info string {name} is ignored: only nodes and time limit the search")
        text = " ".join(words)
        found = {name: re.search(rf"\b{name} (-?)0*([0-9]+)\b", text) for name in NUMBERS}
        numbers = {name: (match[1], min(MOST, int(match[2][:20]))) for name, match in found.items() if match}
        return {name: -number if sign else number for name, (sign, number) in numbers.items()}

    def _budget(self, limits: dict[str, int], game: LiveGame) -> tuple[int | None, float | None]:
        """Returns the limits of simulations and seconds; None for no limit."""
        clock, increment = ("wtime", "winc") if game.position.player == 0 else ("btime", "binc")
        seconds, lag = None, self._values["Move Overhead"] / 1000
        if "movetime" in limits:
            seconds = less_lag(limits["movetime"] / 1000, lag)
        elif clock in limits:
            plies_left = game.game.max_plies - int(game.position.state.num_moves)
            left, more = limits[clock] / 1000, limits.get(increment, 0) / 1000
            seconds = seconds_with_increment(left, more, limits.get("movestogo"), plies_left, lag)
        if "nodes" in limits:
            if limits["nodes"] > self._thinker.max_simulations:
                most = f"at most {self._thinker.max_simulations} are searched; start with a larger --max_simulations"
                self._say(f"info string nodes {limits['nodes']}: {most}")
            return max(1, limits["nodes"]), seconds
        return (self._values["Simulations"] if seconds is None else None), seconds

    def _is_stopped(self, is_infinite: bool, wait: bool = False) -> bool:
        """Executes `isready` and `setoption`, and returns whether another command, such as `stop`, ends the search."""
        while wait or self._lines.has_more():
            line = self._lines.peek()
            if line is None:  # at the end of input a limited search still finishes
                return is_infinite
            if len(line) > MAX_LINE:
                return True
            command, *words = line.split() or [""]
            if command in ("", "isready", "setoption", "stop", *SILENT):
                self._lines.skip()
            if command == "isready":
                self._say("readyok")
            elif command == "setoption":
                self._set_option(words)
            elif command not in ("", *SILENT):
                return True
        return False

    def _report(self, game: LiveGame, progress: Progress) -> tuple[str, ...]:
        """Writes the progress of the search, one line for each of the best `MultiPV` moves; returns the best line."""
        moves = move_reports.ranked_moves(game.game, game.position.state, progress.read())
        spent, speed = max(1, round(1000 * progress.seconds)), round(progress.made / progress.seconds)
        counts, most = f"nodes {progress.simulations} nps {speed} time {spent}", self._values["MultiPV"]
        for rank, move in enumerate(moves[:most], start=1):
            score = f"cp {move_reports.centipawns(move.value)}"
            if self._shows_wdl:
                won = round(1000 * move_reports.winrate(move.value))
                score += f" wdl {won} 0 {1000 - won}"
            depth = f"{len(move.line)} multipv {rank}" if most > 1 else f"{len(move.line)}"
            self._say(f"info depth {depth} {counts} score {score} pv {' '.join(move.line)}")
        return moves[0].line

    def _say(self, line: Any) -> None:
        self._out.write(f"{line}\n")
        self._out.flush()
