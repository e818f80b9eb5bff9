"""Engines that speak UCI: how they are spoken to, how they fail, and whole games with one that is installed."""

import asyncio
import collections
import contextlib
import os
import sys
import time

import chess
import pytest

from alphagat.errors import UserError
from alphagat.evaluation.engines import uci
from alphagat.evaluation.engines.base import EngineError
from alphagat.evaluation.engines.process import MAX_LINE_BYTES, EngineProcess, split_command
from alphagat.evaluation.engines.uci import NODES_SECONDS, UciEngine, _UciProcess
from alphagat.games import make_game
from tests.evaluation.host_games import (
    begin,
    fake,
    is_installed,
    play_against_random,
    position_after,
    read_log,
    watch_exit,
    with_child,
)

CHESS = make_game("chess")
VARIANT_GAMES = {  # the moves before a move, the move, and the start as the engine gets it
    "gardner_chess": ((), "b2b3", "gardner", "rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1"),
    "breakthrough:8": (
        ("a2a3", "h7g6"),
        "a3b4",
        "breakthrough",
        "pppppppp/pppppppp/8/8/8/8/PPPPPPPP/PPPPPPPP w - - 0 1",
    ),
}
needs_stockfish = pytest.mark.skipif(not is_installed("stockfish"), reason="stockfish is not installed")


def test_engine_receives_limits_options_and_positions(tmp_path):
    log = tmp_path / "log"
    command = fake("uci", "e2e4", "g1f3", "d7d5", "--log", log)
    with UciEngine(CHESS, command, seconds=0.25, options={"Skill": "3"}) as engine:
        positions = [position_after("chess", *moves) for moves in ((), ("e2e4", "e7e5"), ("d2d4",))]
        names = [CHESS.action_name(position.state, engine.choose(position)) for position in positions]
    assert names == ["e2e4", "g1f3", "d7d5"]
    assert read_log(log) == [
        *("uci", "setoption name Skill value 3", "isready", "ucinewgame", "isready"),
        *("position startpos", "go movetime 250", "position startpos moves e2e4 e7e5", "go movetime 250"),
        *("ucinewgame", "isready", "position startpos moves d2d4", "go movetime 250", "quit", "end of file"),
    ]


def test_nodes_replace_seconds(tmp_path):
    log = tmp_path / "log"
    with UciEngine(CHESS, fake("uci", "e2e4", "--log", log), nodes=70) as engine:
        engine.choose(begin(CHESS))
    assert "go nodes 70" in read_log(log)


@pytest.mark.parametrize(("nodes", "expected"), [(None, 9.0), (70, NODES_SECONDS)])
def test_a_move_has_its_time(monkeypatch, nodes, expected):
    seconds, wait_for = [], _UciProcess.wait_for
    monkeypatch.setattr(
        _UciProcess, "wait_for", lambda self, request, limit: seconds.append(limit) or wait_for(self, request, limit)
    )
    with UciEngine(CHESS, fake("uci", "e2e4"), seconds=4.0, nodes=nodes, grace=5.0) as engine:
        engine.choose(begin(CHESS))
    assert seconds[-1] == expected


def test_castling_and_promotion_use_our_names():
    promotes = ("a2a4", "b7b5", "a4b5", "a7a6", "b5a6", "b8c6", "a6a7", "c8b7")
    castles = ("e2e4", "e7e5", "g1f3", "b8c6", "f1c4", "f8c5")
    with UciEngine(CHESS, fake("uci", "a7b8q", "e1g1")) as engine:
        with pytest.raises(EngineError, match="illegal uci: 'a7b8q'"):
            engine.choose(position_after("chess", *promotes))
        position = position_after("chess", *castles)
        assert CHESS.action_name(position.state, engine.choose(position)) == "e1g1"
    with UciEngine(CHESS, fake("uci", "a7a8n")) as engine:
        position = position_after("chess", *promotes[:-2], "a6a7", "a8b8")
        assert CHESS.action_name(position.state, engine.choose(position)) == "a7a8n"


@pytest.mark.parametrize(("board", "moves", "answer", "variant", "start"), [(k, *v) for k, v in VARIANT_GAMES.items()])
def test_variant_is_named_and_starts_at_its_own_position(tmp_path, board, moves, answer, variant, start):
    log = tmp_path / "log"
    command = fake("uci", answer, "--variants", "other", "--variants", variant, "--log", log)
    position = position_after(board, *moves)
    with UciEngine(position.game, command, nodes=9) as engine:
        assert position.game.action_name(position.state, engine.choose(position)) == answer
    told = " ".join((f"position fen {start}", *(("moves", *moves) if moves else ())))
    assert [line for line in read_log(log) if not line.startswith(("uci", "isready", "go"))] == [
        *(f"setoption name UCI_Variant value {variant}", told, "quit", "end of file")
    ]


ILLEGAL = {"a1a5": "it plays a1a5", "what?": "invalid uci", "(none)": "it plays no move"}


@pytest.mark.parametrize(("answer", "message"), ILLEGAL.items())
def test_illegal_move_in_variant_is_named(answer, message):
    game = make_game("gardner_chess")
    with UciEngine(game, fake("uci", answer, "--variants", "gardner")) as engine:
        with pytest.raises(EngineError, match=message) as caught:
            engine.choose(begin(game))
        assert caught.value.end == "illegal move"


FAILURES = {
    "die": ("died", "it ended with exit status 3; its last output: readyok | readyok | my last words"),
    "kill": ("died", "it was killed by signal 9"),
    "hang": ("timed out", "no answer in time; its last output: uciok"),
    "pour": ("timed out", "no answer in time"),
    "e2e5": ("illegal move", "illegal uci: 'e2e5'"),
    "x" * 5000: ("illegal move", "…; its last output: info string thinking | nonsense | bestmove x"),
    "(none)": ("illegal move", "it plays no move; its last output: info string thinking"),
    "what?": ("illegal move", "'what?'"),
}


@pytest.mark.parametrize(("answer", "end", "message"), [(key, *value) for key, value in FAILURES.items()])
def test_failure_is_named_and_next_call_restarts_engine(tmp_path, answer, end, message):
    log = tmp_path / "log"
    with UciEngine(CHESS, fake("uci", answer, "e2e4", "--log", log), seconds=0.1, grace=0.4) as engine:
        with pytest.raises(EngineError) as caught:
            engine.choose(begin(CHESS))
        assert caught.value.end == end
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 1000
        assert CHESS.action_name(begin(CHESS).state, engine.choose(begin(CHESS))) == "e2e4"
        is_new = log.read_text().count("pid ") == 2
        assert is_new == (end in ("died", "timed out"))


def test_a_line_without_end_does_not_exhaust_memory():
    async def read() -> tuple[int, list[str]]:
        said = collections.deque()
        protocol = uci._listening_protocol(chess, said)()
        for _ in range(100):
            protocol.pipe_data_received(1, b"x" * 1000)
        kept = len(protocol.buffer[1])
        protocol.pipe_data_received(1, b"\nhello\n")
        return kept, list(said)

    kept, said = asyncio.run(read())
    assert kept <= MAX_LINE_BYTES
    assert said[-1] == "hello"


@pytest.mark.parametrize("answer", ["e2e4", "die"])
def test_children_of_a_wrapper_end_with_it(tmp_path, answer):
    with UciEngine(CHESS, with_child(fake("uci", answer), tmp_path / "pid")) as engine, watch_exit(tmp_path / "pid"):
        with contextlib.suppress(EngineError):
            engine.choose(begin(CHESS))
        engine.close()


MISTAKES = {
    "another board": ("hex:5", "stockfish", {}, "board hex:5: UCI engines play only chess, gardner_chess, breakth"),
    "no variants": ("gardner_chess", fake("uci"), {}, "does not play gardner_chess: its options do not include UCI_V"),
    "another variant": ("breakthrough:8", fake("uci", "--variants", "gardner"), {}, "include UCI_Variant breakthrough"),
    "not installed": ("chess", "no-such-engine", {}, "engine 'no-such-engine' is not installed"),
    "no UCI": ("chess", "true", {}, "engine 'true' does not play chess: it ended with exit status 0"),
    "no such option": ("chess", fake("uci"), {"Skil": "3"}, "does not support option Skil (available options: Skill)"),
    "controls": ("chess", fake("uci", "--skill", "\x1b[31mred"), {"Skil": "3"}, "Skil (available options: [31mred)"),
    "no number": ("chess", fake("uci"), {"Skill": "high"}, "expected integer for spin option 'Skill', got: 'high'"),
    "range": ("chess", fake("uci"), {"Skill": "30"}, "'Skill' to be at most 20, got: 30"),
    "managed": ("chess", fake("uci"), {"MultiPV": "3"}, "cannot set MultiPV which is automatically managed"),
}


@pytest.mark.parametrize(("board", "command", "options", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_invalid_setup_is_rejected_before_match(board, command, options, message):
    with pytest.raises(UserError) as caught:
        UciEngine(make_game(board), command, options=options)
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


def test_missing_package_is_named(monkeypatch):
    uci._import_chess.cache_clear()
    monkeypatch.setitem(sys.modules, "chess.engine", None)
    with pytest.raises(UserError, match=r"pip install 'alphagat\[engines\]'"):
        UciEngine(CHESS, fake("uci"))


def test_unresponsive_engine_is_killed(tmp_path):
    log = tmp_path / "log"
    engine = UciEngine(CHESS, fake("uci", "--stubborn", "--log", log))
    process_id = int(log.read_text().split()[1])
    os.kill(process_id, 0)
    engine.close()
    engine.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


@needs_stockfish
def test_stockfish_plays_complete_games_by_our_rules():
    """Every position of ours has the legal moves that Stockfish itself counts, and python-chess, and ends as theirs."""
    theirs = EngineProcess(split_command("stockfish"))
    with UciEngine(CHESS, "stockfish", nodes=50, options={"Hash": "1"}) as engine:
        for seed in range(2):
            positions = play_against_random(engine, CHESS, seed)
            for position in positions[:-1:8]:
                assert set(position.legal_actions()) == _legal_moves(theirs, position.moves)
            last, board = positions[-1], chess.Board()
            for move in last.moves:
                assert chess.Move.from_uci(move) in board.legal_moves
                board.push_uci(move)
            assert board.is_checkmate()  # random play does not survive
            assert _legal_moves(theirs, last.moves) == set()
            assert last.state.rewards[seed % 2] == 1
            assert last.state.rewards[0] == (-1 if board.turn == chess.WHITE else 1)
    theirs.close("quit")


@pytest.mark.skipif(not is_installed("fairy-stockfish"), reason="fairy-stockfish is not installed")
@pytest.mark.parametrize("board", VARIANT_GAMES)
def test_fairy_stockfish_plays_variants_by_our_rules(board):
    game, variant = make_game(board), VARIANT_GAMES[board][2]
    theirs = EngineProcess(split_command("fairy-stockfish"))
    theirs.send(f"setoption name UCI_Variant value {variant}")
    with UciEngine(game, "fairy-stockfish", nodes=50) as engine:
        for seed in range(2):
            positions = play_against_random(engine, game, seed)
            for position in positions[:-1:4]:
                assert set(position.legal_actions()) == _legal_moves(theirs, position.moves)
            assert positions[-1].state.rewards[seed % 2] == 1
    theirs.close("quit")


def _legal_moves(process, moves):
    process.send(f"position startpos moves {' '.join(moves)}")
    process.send("go perft 1")
    found = set()
    while not (line := process.read_line(time.monotonic() + 60)).startswith("Nodes searched"):
        if line.endswith(": 1"):
            found.add(line.split(":")[0])
    return found
