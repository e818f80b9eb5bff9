"""Engines that speak GTP: how they are spoken to, how they fail, and whole games with those that are installed."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.evaluation.engines.base import EngineError, last_lines
from alphagat.evaluation.engines.gtp import GtpEngine, read_answer
from alphagat.evaluation.engines.process import (
    MAX_LINE_BYTES,
    MAX_WAITING_LINES,
    NUM_KEPT_LINES,
    START_SECONDS,
    EngineProcess,
    split_command,
)
from alphagat.games import go_rules, make_game
from tests.evaluation.host_games import (
    FAKE,
    begin,
    fake,
    is_installed,
    play_against_random,
    play_game,
    position_after,
    read_log,
    watch_exit,
    with_child,
)

GO = make_game("go:5")
RULES = "--chinese-rules --positional-superko --play-out-aftermath --capture-all-dead"
GNUGO = f"gnugo --mode gtp --level 1 --max-level 1 {RULES}"
needs_gnugo = pytest.mark.skipif(not is_installed("gnugo"), reason="gnugo is not installed")
needs_rhino = pytest.mark.skipif(not is_installed("gtp-rhino"), reason="gtp-rhino is not installed")


@pytest.mark.parametrize("flags", [(), ("--anonymous",), ("--chatty",), ("--chatty", "--known", "time_left")])
def test_reads_answers(flags):
    with GtpEngine(GO, fake("gtp", "C3", "PASS", "e5", *flags)) as engine:
        for names, expected in (((), "c3"), (("c3", "d3"), "pass"), (("c3", "d3", "pass", "a1"), "e5")):
            action = engine.choose(position_after("go:5", *names))
            assert GO.action_names[action] == expected


FAILURES = {
    "die": ("died", "it ended with exit status 3; its last output: "),
    "kill": ("died", "it was killed by signal 9"),
    "hang": ("timed out", "no answer in time"),
    "babble": ("timed out", "its last output: thinking"),
    "pour": ("timed out", "thinking thinking"),
    "resign": ("resigned", "as black"),
    "c9": ("illegal move", "it plays 'c9' as black"),
    "swap-pieces": ("illegal move", "it plays 'swap-pieces'"),
    "": ("illegal move", "it plays ''"),
    "?too hard\nfor me": ("refused", "it answered genmove black with: too hard for me"),
    "x" * 5000: ("illegal move", f"it plays '{'x' * 200}…'"),
}


@pytest.mark.parametrize(("answer", "end", "message"), [(key, *value) for key, value in FAILURES.items()])
def test_failure_is_named_and_next_call_restarts_engine(tmp_path, answer, end, message):
    log = tmp_path / "log"
    with GtpEngine(GO, fake("gtp", answer, "c3", "--log", log), seconds=0.2, grace=0.4) as engine:
        with pytest.raises(EngineError) as caught:
            engine.choose(begin(GO))
        assert caught.value.end == end
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 1000
        assert GO.action_names[engine.choose(begin(GO))] == "c3"
        assert read_log(log).count("clear_board") == 2
        is_new = log.read_text().count("pid ") == 2
        assert is_new == (end in ("died", "timed out"))


def test_error_quotes_last_output_of_engine():
    with GtpEngine(GO, fake("gtp", "die")) as engine, pytest.raises(EngineError, match="my last words"):
        engine.choose(begin(GO))


def test_output_is_quoted_without_control_characters():
    assert last_lines(["one", "two", "\r", "10 %\r20 %\r", "\x1b[31mred\x00\x9b2m", "x" * 300]) == (
        f"10 % 20 % | [31mred 2m | {'x' * 200}…"
    )


def test_refused_move_forfeits_game():
    with (
        GtpEngine(GO, fake("gtp", "c3", "--refuse", "play white")) as engine,
        pytest.raises(EngineError, match="it answered play white d3 with: I refuse") as caught,
    ):
        engine.choose(position_after("go:5", "c3", "d3"))
    assert caught.value.end == "refused"


def test_engine_receives_only_missing_moves(tmp_path):
    log = tmp_path / "log"
    known = [word for name in ("time_settings", "time_left", "param_mohex") for word in ("--known", name)]
    with GtpEngine(make_game("go:5:0.5"), fake("gtp", "c3", "a1", "b2", "--log", log, *known), seconds=2.4) as engine:
        engine.choose(position_after("go:5:0.5"))
        engine.choose(position_after("go:5:0.5", "c3", "pass"))
        engine.choose(position_after("go:5:0.5", "c3", "c2", "a1"))
    assert read_log(log) == [
        *("list_commands", "boardsize 5", "komi 0.5", "time_settings 0 2 1", "param_mohex max_time 2.4"),
        *("clear_board", "time_left black 2 1", "genmove black"),
        *("play white pass", "time_left black 2 1", "genmove black"),
        *("clear_board", "play black c3", "play white c2", "play black a1", "time_left white 2 1", "genmove white"),
        *("quit", "end of file"),
    ]


def test_each_command_has_its_time(monkeypatch):
    seconds, ask = {}, GtpEngine._ask
    monkeypatch.setattr(
        GtpEngine, "_ask", lambda self, line, limit: seconds.update({line.split()[0]: limit}) or ask(self, line, limit)
    )
    with GtpEngine(GO, fake("gtp", "c3"), seconds=4.0, grace=5.0) as engine:
        engine.choose(begin(GO))
    assert (seconds["list_commands"], seconds["clear_board"], seconds["genmove"]) == (START_SECONDS, 5.0, 9.0)


def test_forced_pass_needs_no_engine_and_may_be_refused(tmp_path):
    log, position = tmp_path / "log", _before_a_pass("othello:4")
    refusals = ("--refuse", "play black pass", "--refuse", "play white pass")
    with GtpEngine(position.game, fake("gtp", "a9", "--log", log, *refusals)) as engine:
        assert position.game.action_names[engine.choose(position)] == "pass"
        assert read_log(log) == ["list_commands", "boardsize 4"]
        with pytest.raises(EngineError, match="it plays 'a9'"):
            engine.choose(position_after("othello:4", *position.moves, "pass"))
    colour = ("black", "white")[position.player]
    assert read_log(log)[-4:-2] == [f"play {colour} pass", f"genmove {('white', 'black')[position.player]}"]


def _before_a_pass(board):
    """Plays random games until somebody has to pass."""
    random = np.random.default_rng(0)

    def choose(position):
        return int(random.choice(np.flatnonzero(position.state.legal_action_mask)))

    for _ in range(100):
        for position in play_game([choose, choose], make_game(board)):
            if not position.state.terminated and list(position.legal_actions()) == ["pass"]:
                return position
    raise AssertionError("no game with a pass")


def test_hex_swap_is_sent_as_resulting_stones(tmp_path):
    log, game = tmp_path / "log", make_game("hex:4:swap")
    with GtpEngine(game, fake("gtp", "swap-pieces", "a1", "a2", "--log", log, "--known", "param_game")) as engine:
        assert game.action_names[engine.choose(position_after(game.name, "b3"))] == "swap"
        engine.choose(position_after(game.name, "b3", "swap", "d4"))
        engine.choose(position_after(game.name, "b3", "swap", "d4", "a1", "d3"))
    assert read_log(log)[2:-2] == [
        *("clear_board", "play black b3", "param_game allow_swap 1", "genmove white"),
        *("clear_board", "play white c2", "play black d4", "param_game allow_swap 0", "genmove white"),
        *("play black d3", "param_game allow_swap 0", "genmove white"),
    ]
    after = position_after(game.name, "b3", "swap")
    assert np.flatnonzero(after.state.cells).tolist() == [game.action_names.index("c2")]


MISTAKES = {
    "another board": ("connect_four", "gnugo", "board connect_four: GTP engines play Go, Othello and Hex only"),
    "not installed": ("go:5", "no-such-engine --gtp", "engine 'no-such-engine' is not installed"),
    "quotes": ("go:5", "gnugo 'x", "No closing quotation"),
    "nothing": ("go:5", "''", "engine '' is not installed"),
    "no GTP": (
        "go:5",
        "true",
        "engine 'true' does not play go:5: it ended with exit status 0; its last output: nothing",
    ),
    "size": ("othello:6", fake("gtp", "--refuse", "boardsize 6"), "it answered boardsize 6 with: I refuse"),
}


@pytest.mark.parametrize(("board", "command", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_invalid_setup_is_rejected_before_match(board, command, message):
    with pytest.raises(UserError) as caught:
        GtpEngine(make_game(board), command)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unresponsive_engine_is_killed(tmp_path):
    log = tmp_path / "log"
    engine = GtpEngine(GO, fake("gtp", "c3", "--stubborn", "--log", log))
    process_id = int(log.read_text().split()[1])
    os.kill(process_id, 0)
    engine.close()
    engine.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)


@pytest.mark.parametrize("answer", ["c3", "die"])
def test_children_of_a_wrapper_end_with_it(tmp_path, answer):
    with GtpEngine(GO, with_child(fake("gtp", answer), tmp_path / "pid")) as engine, watch_exit(tmp_path / "pid"):
        with contextlib.suppress(EngineError):
            engine.choose(begin(GO))
        engine.close()


def test_engine_reads_end_of_file_when_parent_is_killed(tmp_path):
    log = tmp_path / "log"
    program = (
        "import sys, time; from alphagat.evaluation.engines.process import EngineProcess;"
        "process = EngineProcess(sys.argv[1:]); process.send('1 name');"
        "print(process.read_line(time.monotonic() + 60), flush=True); time.sleep(600)"
    )
    words = [sys.executable, "-c", program, sys.executable, str(FAKE), "gtp", "--log", str(log)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as ours:
        assert ours.stdout.readline() == "=1 \n"
        ours.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while "end of file" not in read_log(log) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert read_log(log) == ["name", "end of file"]


def test_endless_output_does_not_exhaust_memory():
    process = EngineProcess(split_command("yes"))
    end = time.monotonic() + 0.5
    assert process.read_line(end) == "y"
    time.sleep(max(0.0, end - time.monotonic()))
    assert process._lines.qsize() <= MAX_WAITING_LINES
    with pytest.raises(EngineError, match=r"no answer in time; its last output: y \| y"):
        process.read_line(end)
    process.close()


@pytest.mark.parametrize("stream", ["", "1>&2"])
def test_a_line_without_end_does_not_exhaust_memory(stream):
    with contextlib.closing(EngineProcess(split_command(f"sh -c 'yes | tr -d \"\\n\" {stream}'"))) as process:
        if not stream:
            assert process.read_line(time.monotonic() + 60) == "y" * MAX_LINE_BYTES
        deadline = time.monotonic() + 60
        while len(process._said) < NUM_KEPT_LINES and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [len(line) for line in process._said] == [MAX_LINE_BYTES] * NUM_KEPT_LINES


def test_an_answer_without_end_does_not_exhaust_memory(monkeypatch):
    monkeypatch.setattr("alphagat.evaluation.engines.gtp.MAX_WAITING_LINES", 3)
    with contextlib.closing(EngineProcess(split_command("printf '=1 a\nb\nc\nd\ne\n\n'"))) as process:
        assert read_answer(process, 1, time.monotonic() + 60).text == "a\nb\nc"


class Dialogue:
    """An installed engine, spoken to without `GtpEngine`."""

    def __init__(self, command):
        self.process, self.number = EngineProcess(split_command(command)), 0

    def ask(self, line):
        self.number += 1
        self.process.send(f"{self.number} {line}")
        answer = read_answer(self.process, self.number, time.monotonic() + 60)
        assert not answer.is_error, (line, answer.text)
        return answer.text


@needs_gnugo
@pytest.mark.parametrize(("board", "num_games"), [("go:5", 2), ("go:9", 1)])
def test_gnugo_plays_complete_games_and_agrees_on_final_board(board, num_games):
    game = make_game(board)
    with GtpEngine(game, GNUGO) as engine:
        for seed in range(num_games):
            last = play_against_random(engine, game, seed)[-1]
            theirs = Dialogue(GNUGO)
            theirs.ask(f"boardsize {game.size}")
            theirs.ask(f"komi {game.komi}")
            for name, player in zip(last.moves, last.players):
                theirs.ask(f"play {('black', 'white')[player]} {name}")
            for sign, colour in ((1, "black"), (-1, "white")):
                stones = {game.action_names[cell] for cell in np.flatnonzero(np.sign(last.state.chains) == sign)}
                assert set(theirs.ask(f"list_stones {colour}").lower().split()) == stones
            assert last.moves[-2:] == ("pass", "pass")
            lead = int(go_rules.area_lead(last.state.chains, np.bool_(True))) - game.komi
            assert theirs.ask("final_score") == f"{'BW'[lead < 0]}+{abs(lead):.1f}"
            theirs.process.close("quit")
            assert last.state.rewards[seed % 2] == 1  # random play does not beat it


@needs_gnugo
def test_gnugo_alternates_between_games():
    names = {}
    with GtpEngine(GO, GNUGO) as engine:
        for moves in ((), ("a1", "e5"), ("a1",), ()):
            names[moves] = GO.action_names[engine.choose(position_after("go:5", *moves))]
    assert names[()] == names[("a1",)] == "c3"  # the one good point


@needs_rhino
def test_rhino_plays_complete_games_and_agrees_on_final_board():
    game, passes = make_game("othello:8"), 0
    with GtpEngine(game, "gtp-rhino --level 1") as engine:
        for seed in range(6):
            last = play_against_random(engine, game, seed)[-1]
            theirs = Dialogue("gtp-rhino")
            for name, player in zip(last.moves, last.players):
                if name == "pass":
                    passes += 1
                else:
                    theirs.ask(f"play {('black', 'white')[player]} {name}")
            assert _without_spaces(theirs.ask("showboard")) == _without_spaces(game.render(last.state).upper())
            black, white = (int(np.bitwise_count(discs).sum()) for discs in last.state.discs)
            empty = 64 - black - white  # gtp-rhino gives empty cells to the winner
            lead = f"{'BW'[black < white]}+{abs(black - white) + empty}" if black != white else "0"
            assert theirs.ask("final_score") == lead
            theirs.process.close("quit")
    assert passes > 0


def _without_spaces(drawn):
    """Returns the rows of a drawn board of Othello."""
    rows = ["".join(line.split()[1:]) for line in drawn.splitlines()]
    return [row for row in rows if len(row) == 8 and set(row) <= set("XO.")]


@needs_rhino
def test_rhino_rejects_other_sizes():
    with pytest.raises(UserError, match="does not play othello:6: it answered boardsize 6 with: unacceptable size"):
        GtpEngine(make_game("othello:6"), "gtp-rhino")
