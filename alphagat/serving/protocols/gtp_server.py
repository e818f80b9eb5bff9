"""A GTP engine (Go Text Protocol, version 2) for every game whose action names are single words.

- Vertices are action names in any case: `d4`, `pass`, a column of Connect Four. White moves first in chess, Black in
  all other games.
- Players alternate by the rules of the game, with the exceptions in `turns`.
- In Hex, Black connects top and bottom, and a1 is at the top left. A swap is `swap-pieces`.
- Handicap stones are moves of Black between which White passes; White gets no points for them.
- Komi ends in .5. Scoring removes no dead stones: capture them before the game ends.
- With a clock, `clock` allocates time to each move, and `--simulations`, if given, limits the search. Without a clock,
  each move gets a fixed number of simulations.
- An analysis runs until the next line arrives, and ignores options of KataGo that change only what is written. Its
  `winrate` is (1 + value) / 2, so a draw counts as half a win.
- `lz-genmove_analyze` and `kata-genmove_analyze` write the analysis of a `genmove`, then `play` and the move.
"""

import dataclasses
import functools
import inspect
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from alphagat.agents.analysis import Analysis
from alphagat.errors import UserError, internal_error
from alphagat.evaluation.engines.gtp import without_controls
from alphagat.evaluation.live_game import IllegalMoveError, Position
from alphagat.games.go import GoGame
from alphagat.serving.protocols import gtp_names, gtp_score
from alphagat.serving.protocols.clock import Clock
from alphagat.serving.protocols.gtp_words import (
    DIALECTS,
    AnalysisRequest,
    CommandError,
    analysis_line,
    to_float,
    to_int,
    without_output_options,
)
from alphagat.serving.protocols.line_reader import MAX_LINE, TOO_LONG, Lines
from alphagat.serving.protocols.thinking import Thinker
from alphagat.serving.protocols.turns import Turns

MAX_THINKERS = 3  # a player holds compiled programs and a tree


class GtpServer:
    """Plays one game. The function of a command returns its answer, or raises an error whose message is the answer."""

    def __init__(self, make_thinker: Callable[[str], Thinker], thinker: Thinker, simulations: int | None, version: str):
        """Starts a game.

        Args:
          make_thinker: returns the player for another board of the same family.
          thinker: the player for the first board.
          simulations: most simulations per move; None: no limit with a clock, else the number set in the run's config.
          version: the answer to the command `version`.

        Raises:
          UserError: an action name has several words.
        """
        self._make_thinker, self._thinkers = make_thinker, {thinker.agent.game.name: thinker}
        self._simulations = simulations
        self._setting: Clock | None = None
        self._in_periods = False
        self._analysis: AnalysisRequest | None = None
        self._set_board(thinker.agent.game.name)
        self._commands = {
            "protocol_version": lambda: "2",
            "name": lambda: "AlphaGAT",
            "version": lambda: version,
            "known_command": lambda name: "true" if name in self._commands else "false",
            "list_commands": lambda: "\n".join(sorted(self._commands)),
            "quit": lambda: "",
            "boardsize": self._boardsize,
            "clear_board": lambda: self._set_board(self._turns.game.name),
            "play": self._play,
            "genmove": self._genmove,
            "undo": lambda: self._turns.undo(),
            "showboard": lambda: "\n" + self._turns.game.render(self._turns.position.state),
            "final_score": self._final_score,
            "time_settings": self._time_settings,
            "kgs-time_settings": self._kgs_time_settings,
            "time_left": self._time_left,
            **{f"{dialect}-analyze": functools.partial(self._begin_analysis, dialect) for dialect in DIALECTS},
            **{f"{dialect}-genmove_analyze": functools.partial(self._begin_genmove, dialect) for dialect in DIALECTS},
        }
        if isinstance(thinker.agent.game, GoGame):
            self._commands |= self._commands_of_go()

    def _commands_of_go(self) -> dict[str, Callable]:
        return {
            "komi": self._komi,
            "final_status_list": self._final_status_list,
            "fixed_handicap": self._fixed_handicap,
            "place_free_handicap": functools.partial(self._fixed_handicap, is_free=True),
            "set_free_handicap": self._set_handicap,
        }

    def serve(self, source: TextIO, out: TextIO) -> None:
        """Answers the commands of `source` until `quit` or its end."""
        lines = Lines(source)
        for line in lines:
            words = _words(line)
            if not words:
                continue
            number = words.pop(0) if words[0].isdigit() else ""
            if not words:
                continue
            answer = self.answer(words) if len(line) <= MAX_LINE else ("?", TOO_LONG)
            if self._analysis is not None:
                _write(out, f"={number}\n")
                try:
                    self._analyze(lines, out)
                except Exception as error:  # as in `answer`
                    _write(out, f"{internal_error(error)}\n")
                _write(out, "\n")
                continue
            sign, text = answer
            _write(out, f"{sign}{number} {text}".rstrip(" ") + "\n\n")
            if words[0] == "quit":
                return

    def answer(self, words: list[str]) -> tuple[str, str]:
        """Executes one command. Returns `=` or `?`, and the text of the answer."""
        command = self._commands.get(words[0])
        if command is None:
            return "?", "unknown command"
        try:
            arguments = inspect.signature(command).bind(*words[1:])
        except TypeError:
            return "?", "syntax error: too few or too many words"
        try:
            return "=", command(*arguments.args) or ""
        except (CommandError, IllegalMoveError, UserError) as error:
            return "?", " ".join(str(error).split())
        except Exception as error:  # one failed command must not end the game
            return "?", internal_error(error)

    def _boardsize(self, size: str, height: str | None = None) -> None:
        if height is not None and to_int(height) != to_int(size):  # HexGui sends width and height
            raise CommandError("unacceptable size")
        try:
            self._set_board(gtp_names.resize(self._turns.game, to_int(size)))
        except UserError as error:
            raise CommandError("unacceptable size") from error

    def _komi(self, komi: str) -> None:
        game, before = self._turns.game, self._turns
        assert isinstance(game, GoGame)
        try:
            name = gtp_names.with_komi(game, to_float(komi))
        except UserError as error:
            raise CommandError(f"komi {komi} is invalid: use one that ends in .5, from 0.5 to 39.5") from error
        if to_float(komi) == game.komi:
            return
        clocks = self._clocks
        self._set_board(name)
        self._clocks = clocks  # the game goes on
        for player, move in zip(before.position.players, before.position.moves):
            self._turns.play_for(player, move)

    def _fixed_handicap(self, number: str, *, is_free: bool = False) -> str:
        """Places the stones and returns their vertices. `is_free`: a larger number than possible places all it can."""
        game = self._turns.game
        assert isinstance(game, GoGame)
        stones, most = to_int(number), gtp_names.most_handicap(game.size)
        if stones < 2 or most == 0 or (stones > most and not is_free):
            raise CommandError("invalid number of stones")
        points = gtp_names.handicap_points(game.size, min(stones, most))
        self._set_handicap(*points)
        return " ".join(gtp_names.vertex(game, point) for point in points)

    def _set_handicap(self, *vertices: str) -> None:
        if self._turns.position.moves:
            raise CommandError("board not empty")
        points = [gtp_names.move_name(self._turns.game, vertex) for vertex in vertices]
        if len(points) < 2 or "pass" in points:
            raise CommandError("bad vertex list")
        try:
            self._turns.place(points)
        except IllegalMoveError as error:
            raise CommandError("bad vertex list") from error

    def _play(self, colour: str, vertex: str) -> None:
        try:
            self._turns.play_for(self._player(colour), gtp_names.move_name(self._turns.game, vertex))
        except IllegalMoveError as error:
            raise CommandError(f"illegal move: {error}") from error

    def _genmove(self, colour: str) -> str:
        player, begin = self._player(colour), time.monotonic()
        position = self._position_for(player)
        analysis = self._thinker.analyze(position.state, *self._budget(player))
        return self._make_move(player, position, analysis, time.monotonic() - begin)

    def _position_for(self, player: int) -> Position:
        position = self._turns.position_for(player)
        if position.state.terminated:
            raise CommandError("the game is over")
        return position

    def _budget(self, player: int) -> tuple[int | None, float | None]:
        """Returns the limits of simulations and seconds of a move; None for no limit."""
        clock = self._clocks[player]
        if clock is None:
            return self._simulations or self._thinker.agent.config.evaluation.num_simulations, None
        return self._simulations, clock.seconds_for_move(self._turns.game.max_plies - len(self._turns.position.moves))

    def _make_move(self, player: int, position: Position, analysis: Analysis, seconds: float) -> str:
        """Plays the best move after a search of some seconds, and returns its vertex."""
        name = position.game.action_name(position.state, int(analysis.action))
        self._turns.play_for(player, name)
        if (clock := self._clocks[player]) is not None:
            clock.spend(seconds)
        return gtp_names.vertex(position.game, name)

    def _final_score(self) -> str:
        score = gtp_score.score(self._turns)
        if score is None:
            raise CommandError("cannot score: the game is not over")
        return score

    def _final_status_list(self, status: str) -> str:
        if status not in ("alive", "seki", "dead"):
            raise CommandError(f"syntax error: {status} is unknown; expected alive, seki or dead")
        points = gtp_score.stones(self._turns) if status == "alive" else []  # scoring removes no dead stones
        return " ".join(gtp_names.vertex(self._turns.game, point) for point in points)

    # Time. Settings are for both players, `time_left` is for one.

    def _time_settings(self, main: str, overtime: str, moves: str) -> None:
        main_seconds, overtime_seconds, num_moves = to_float(main), to_float(overtime), to_int(moves)
        is_unlimited = (overtime_seconds > 0 and num_moves == 0) or not (main_seconds or overtime_seconds)
        self._set_clock(None if is_unlimited else Clock(main_seconds, overtime_seconds, max(1, num_moves)))

    def _kgs_time_settings(self, system: str, *numbers: str) -> None:
        values = [to_float(number) for number in numbers]
        match system, values:
            case "none", []:
                self._set_clock(None)
            case "absolute", [main]:
                self._set_clock(Clock(main))
            case "byoyomi", [main, period, _]:  # each move stays within one period, so their number does not matter
                self._set_clock(Clock(main, period), in_periods=True)
            case "canadian", [main, overtime, moves] if moves >= 1:
                self._set_clock(Clock(main, overtime, int(moves)))
            case _:
                raise CommandError("syntax error: expected none, absolute, byoyomi or canadian, and their numbers")

    def _time_left(self, colour: str, seconds: str, moves: str) -> None:
        player, left, num_moves = self._player(colour), to_float(seconds), to_int(moves)
        setting = self._setting or Clock(0.0)
        if num_moves == 0:
            self._clocks[player] = Clock(left, setting.overtime, setting.moves)
        else:
            self._clocks[player] = Clock(0.0, left, 1 if self._in_periods else num_moves)

    # Analysis, in the dialects of Leela Zero and KataGo.

    def _begin_analysis(self, dialect: str, *words: str) -> None:
        player, interval = self._read_analysis(words)
        self._analysis = AnalysisRequest(dialect, interval, self._position_for(player), None)

    def _begin_genmove(self, dialect: str, *words: str) -> None:
        player, interval = self._read_analysis(words)
        self._analysis = AnalysisRequest(dialect, interval, self._position_for(player), player)

    def _read_analysis(self, words: Sequence[str]) -> tuple[int, float]:
        """Returns the player, by default the one to move, and the seconds between lines."""
        rest = without_output_options(words)
        player = gtp_names.player_of(self._turns.game, rest[0]) if rest else None
        if player is not None:
            rest.pop(0)
        if len(rest) > 1:
            raise CommandError(f"syntax error: {rest[1]} is unknown; expected [COLOUR] [CENTISECONDS]")
        interval = max(1, to_int(rest[0]) if rest else 100) / 100
        return (self._turns.position.player if player is None else player), interval

    def _analyze(self, lines: Lines, out: TextIO) -> None:
        assert self._analysis is not None
        (dialect, interval, position, player), self._analysis = self._analysis, None
        limits = (None, None) if player is None else self._budget(player)
        reported_at, last = 0.0, None
        for progress in self._thinker.think(position.state, *limits):
            last = progress
            if player is None and lines.has_more():
                break
            if progress.seconds - reported_at >= interval:
                reported_at = progress.seconds
                _write(out, f"{analysis_line(dialect, position, progress)}\n")
        assert last is not None
        if reported_at < last.seconds:
            _write(out, f"{analysis_line(dialect, position, last)}\n")
        if player is not None:
            _write(out, f"play {self._make_move(player, position, last.read(), last.seconds)}\n")
            return
        while not lines.has_more():
            time.sleep(0.01)

    # The game.

    def _set_board(self, name: str) -> None:
        """Starts a new game on the board `name`. On UserError the current game is kept."""
        thinker = self._thinkers.pop(name, None) or self._make_thinker(name)
        self._thinkers[name] = thinker  # the newest is last
        for old in list(self._thinkers)[:-MAX_THINKERS]:
            del self._thinkers[old]
        for each in self._thinkers.values():
            each.forget()
        self._thinker = thinker
        if not gtp_names.has_names(self._thinker.agent.game):
            raise UserError(f"board {name}: its moves have names of several words, which GTP cannot express")
        self._turns = Turns(self._thinker.agent.game)
        self._set_clock(self._setting, self._in_periods)

    def _player(self, colour: str) -> int:
        player = gtp_names.player_of(self._turns.game, colour)
        if player is None:
            raise CommandError(f"syntax error: {colour} is not a colour")
        return player

    def _set_clock(self, setting: Clock | None, in_periods: bool = False) -> None:
        """Sets both clocks. With `in_periods`, `time_left` counts overtime periods instead of moves, as in byoyomi."""
        self._setting, self._in_periods = setting, in_periods
        self._clocks = [None if setting is None else dataclasses.replace(setting) for _ in range(2)]


def _words(line: str) -> list[str]:
    """Splits a line into words, without control characters and comments."""
    return without_controls(line).partition("#")[0].split()


def _write(out: TextIO, text: str) -> None:
    out.write(text)
    out.flush()
