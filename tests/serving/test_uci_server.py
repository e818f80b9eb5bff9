"""Tests the UCI engine: golden transcripts, limits, errors, and a complete game as a subprocess."""

import copy
import dataclasses
import functools
import io
import re
import sys
import threading
import time
from types import SimpleNamespace

import chess
import jax
import pytest

from alphagat.agents import weight_files
from alphagat.agents.build import make_configured_network, make_params
from alphagat.evaluation.engines.uci import UciEngine
from alphagat.games import make_game
from alphagat.serving.protocols.clock import less_lag
from alphagat.serving.protocols.move_reports import centipawns
from alphagat.serving.protocols.thinking import Progress, Thinker
from alphagat.serving.protocols.uci_server import UciServer
from tests.evaluation.host_games import play_against_random
from tests.fuzz import line_mutants
from tests.search.evaluators import uniform_evaluator
from tests.serving.agents import make_agent
from tests.serving.compilations import compiled
from tests.training.tiny import tiny_config


@functools.cache
def thinker():
    return Thinker(make_agent("chess", uniform_evaluator), max_simulations=64)


@pytest.fixture
def server():
    return UciServer(thinker(), 8, "1.2.3")


def talk(server, *lines):
    out = io.StringIO()
    server.serve(io.StringIO("\n".join(lines) + "\n"), out)
    return out.getvalue().splitlines()


def test_a_golden_transcript(server):
    assert talk(server, "uci", "", "isready", "ucinewgame", "setoption name UCI_ShowWDL value true", "isready") == [
        "id name AlphaGAT 1.2.3",
        "id author the AlphaGAT contributors",
        "option name Simulations type spin default 8 min 1 max 64",
        "option name MultiPV type spin default 1 min 1 max 218",
        "option name Move Overhead type spin default 50 min 0 max 10000",
        "option name Hash type spin default 16 min 1 max 33554432",
        "option name Threads type spin default 1 min 1 max 1024",
        "option name UCI_ShowWDL type check default false",
        "uciok",
        "readyok",
        "readyok",
    ]
    info, best = talk(server, "position startpos moves e2e4", "go nodes 20")
    number, move = "-?[0-9]+", "[a-h][1-8][a-h][1-8][qrbn]?"
    assert re.fullmatch(
        rf"info depth {number} nodes 20 nps {number} time {number} score cp {number} wdl {number} 0 {number} "
        rf"pv {move}( {move})*",
        info,
    )
    assert re.fullmatch(rf"bestmove {move}( ponder {move})?", best)
    line, board = info.partition(" pv ")[2].split(), chess.Board()
    for name in ("e2e4", *line):
        board.push(board.parse_uci(name))
    assert best.split()[1] == line[0]


def test_a_search_reports_every_second_in_milliseconds(server, monkeypatch):
    """`nps` counts this search only, `nodes` also those kept from the last one."""
    analysis = thinker().analyze(server._game.position.state)
    times = (0.5, 1.2, 1.9, 2.5)

    def think(state, simulations, seconds):
        return (Progress(50 + number, 10 * number, spent, lambda: analysis) for number, spent in enumerate(times, 1))

    monkeypatch.setattr(thinker(), "think", think)
    *infos, _ = talk(server, "position startpos", "go nodes 20")
    counts = [re.search("nodes (.*) nps (.*) time (.*) score", info) for info in infos]
    assert [tuple(map(int, match.groups())) for match in counts if match] == [
        (52, round(20 / 1.2), 1200),
        (54, 16, 2500),
        (54, 16, 2500),
    ]


def test_a_new_game_forgets_the_search(server, monkeypatch):
    forgotten = []
    monkeypatch.setattr(thinker(), "forget", lambda: forgotten.append(True))
    talk(server, "ucinewgame")
    assert forgotten == [True]


def test_servers_search_as_the_evaluations_of_the_run():
    agent = dataclasses.replace(thinker().agent, config=copy.deepcopy(thinker().agent.config))
    agent.config.search.num_simulations, agent.config.evaluation.num_simulations = 5, 7
    server = UciServer(Thinker(agent, max_simulations=8), None, "")
    info, _ = talk(server, "position startpos", "go")
    assert " nodes 7 " in info


MATES = {"7k/8/5KQ1/8/8/8/8/8 w - - 0 1": "g6g7", "8/8/8/8/8/5kq1/8/7K b - - 0 1": "g3g2"}


@pytest.mark.parametrize(("fen", "mate"), MATES.items(), ids=["white", "black"])
def test_a_mate_in_one(server, fen, mate):
    info, best = talk(server, f"position fen {fen}", "go nodes 64")
    assert best == f"bestmove {mate}"
    assert " score cp 12800 pv " in info
    moved = talk(server, f"position fen {fen} moves {mate}", "go nodes 8")
    assert moved == ["info string the game is over", "bestmove (none)"]


@pytest.mark.parametrize("fen", MATES, ids=["white", "black"])
def test_wins_come_first_for_the_player_to_move(server, fen):
    info, _ = talk(server, "setoption name UCI_ShowWDL value true", f"position fen {fen}", "go nodes 64")
    assert " wdl 1000 0 0 pv " in info


REPEATED = "position startpos moves g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8"


@pytest.mark.parametrize(
    "position",
    [
        REPEATED,  # for the third time
        f"{REPEATED} e2e4",
        f"{REPEATED} e2e4 g8f6 e4e5 f6g8 g1f3 g8f6 f3g1 f6g8 g1f3",
        "position fen 8/8/8/4k3/8/8/8/R3K3 w - - 99 300 moves a1a4",
        "position fen 8/8/8/4k3/8/8/8/R3K3 w - - 99 300 moves a1a4 e5d5 a4a5",
        "position fen 8/8/8/4k3/8/8/8/R3K3 w - - 0 9999 moves a1a4 e5d5",
    ],
)
def test_a_draw_that_nobody_claims_does_not_end_the_game(server, position):
    said = talk(server, *([REPEATED] if position.startswith(REPEATED) else []), position, "go nodes 8")
    _, start, *moves = re.split(r"position (?:startpos|fen (.*?))(?: moves |$)", position)
    board = chess.Board(start or chess.STARTING_FEN)
    for move in moves[0].split():
        board.push(board.parse_uci(move))
    assert board.parse_uci(said[-1].split()[1]) in board.legal_moves
    assert not any("invalid" in line for line in said)


def test_stalemate_ends_the_game(server):
    said = talk(server, "position fen 7k/8/5KQ1/8/8/8/8/8 w - - 0 1 moves g6f7", "go nodes 8")
    assert said == ["info string the game is over", "bestmove (none)"]


@pytest.fixture
def requests(server, monkeypatch):
    """Makes searches short; returns a list to which each adds its limits of simulations and seconds."""
    found = []

    def think(state, simulations=None, seconds=None):
        found.append((simulations, seconds and round(seconds, 3)))
        yield from thinker().think(state, 4)

    class Listening:
        agent, max_simulations = thinker().agent, thinker().max_simulations

    Listening.think = staticmethod(think)
    monkeypatch.setattr(server, "_thinker", Listening)
    return found


def test_limits(server, requests):
    go = (
        "go",
        "go nodes 30",
        "go movetime 1000",
        "go nodes 30 movetime 1000",
        "go wtime 41000 btime 1 winc 2000 binc 0",
        "go wtime 100 movestogo 4",
    )
    for line in go:
        talk(server, line)
    talk(server, "position startpos moves e2e4", "go wtime 1 btime 20000 movestogo 10")
    said = talk(server, "setoption name Simulations value 5", "go depth 3")
    assert requests == [
        (8, None),
        (30, None),
        (None, 0.9),
        (30, 0.9),
        (None, round((41 / 40 + 2) * 0.95 - 0.05, 3)),  # an equal share of forty moves, plus the increment
        (None, 0.01),
        (None, 1.85),
        (5, None),
    ]
    assert said[0] == "info string depth is ignored: only nodes and time limit the search"


def test_black_has_its_own_clock_and_increment(server, requests):
    talk(server, "position startpos moves e2e4", "go wtime 1000 btime 40000 winc 1000 binc 3000")
    assert requests == [(None, round(less_lag(40 / 40 + 3), 3))]


def test_the_moves_that_are_left_share_the_clock(server, requests, monkeypatch):
    """Estimated as a quarter of the plies that are left; the longest game is made shorter, since 512 plies are many."""
    monkeypatch.setattr(server._game.game, "max_plies", 80)
    talk(server, "position fen 7k/8/5KQ1/8/8/8/8/8 w - - 0 11", "go wtime 30000")
    assert requests == [(None, round(less_lag(30 / ((80 - 20) // 4)), 3))]


@pytest.mark.parametrize("value", ["0", "65", "-1", "²", "٣", "1e1", "9" * 20])
def test_an_invalid_number_of_simulations_is_reported(server, value):
    assert talk(server, f"setoption name Simulations value {value}", "isready") == [
        f"info string option Simulations: {value} is not a whole number from 1 to 64",
        "readyok",
    ]


OPTIONS = "Simulations, MultiPV, Move Overhead, Hash, Threads, UCI_ShowWDL"
OPTION_MISTAKES = {
    "name Ponder value true": f"there is no option Ponder; the options are {OPTIONS}",
    "name Ponder": f"there is no option Ponder; the options are {OPTIONS}",
    "name move overhead value": "option Move Overhead has no value; give a whole number from 0 to 10000",
    "name Move Overhead": "option Move Overhead has no value; give a whole number from 0 to 10000",
    "name MultiPV value 219": "option MultiPV: 219 is not a whole number from 1 to 218",
    "name UCI_ShowWDL value yes": "option UCI_ShowWDL: yes is not true or false",
    "Simulations value 3": "setoption has no name; write setoption name NAME value VALUE",
    "": "setoption has no name; write setoption name NAME value VALUE",
}


@pytest.mark.parametrize(("words", "message"), OPTION_MISTAKES.items())
def test_an_invalid_option_is_reported(server, words, message):
    assert talk(server, f"setoption {words}") == [f"info string {message}"]


def test_the_move_overhead_replaces_the_lag(server, requests):
    said = talk(server, "setoption name Move Overhead value 300", "go movetime 1000", "go wtime 41000 winc 2000")
    assert requests == [(None, 0.65), (None, round((41 / 40 + 2) * 0.95 - 0.3, 3))]
    assert not any("string" in line for line in said)


def test_several_lines_are_reported_best_first(server):
    fen, mate = next(iter(MATES.items()))
    *infos, best = talk(server, "setoption name MultiPV value 3", f"position fen {fen}", "go nodes 64")
    found = [re.search(r"^info depth [0-9]+ multipv ([1-3]) .* score cp (-?[0-9]+) pv (\S+)", info) for info in infos]
    assert [match[1] for match in found if match] == ["1", "2", "3"]
    assert best == f"bestmove {mate}"
    assert found[0].groups() == ("1", "12800", mate)
    assert len({match[3] for match in found}) == 3


def test_infinite_waits_for_stop_without_a_move(server):
    said = talk(server, "position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "go infinite", "isready", "stop")
    assert said == ["info string the game is over", "readyok", "bestmove (none)"]


@pytest.mark.parametrize("position", ["4k3/8/8/8/8/8/8/4K3 w - - 0 1", "4k3/8/8/8/8/8/4q3/4K3 w - - 0 1 moves e1e2"])
def test_too_little_material_does_not_end_the_game(server, position):
    *_, best = talk(server, f"position fen {position}", "go nodes 8")
    board = chess.Board("4k3/8/8/8/8/8/4K3/8 b - - 0 1" if "moves" in position else position)
    assert board.parse_uci(best.split()[1]) in board.legal_moves


LINES = (
    *(
        "uci",
        "ucinewgame",
        "setoption name Simulations value 4",
        "setoption name MultiPV value 2",
        "setoption name UCI_ShowWDL value true",
    ),
    *("position startpos", "position startpos moves e2e4 e7e5", "position startpos moves e2e4 e7e5 g1f3"),
    "position fen r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1 moves e1g1",
    *("go nodes 2", "go movetime 1", "go wtime 100 btime 100 winc 1 binc 1 movestogo 2", "go infinite", "stop"),
)


def test_damaged_lines_leave_the_engine_ready(server, rounds: int):
    lines = [each for line in line_mutants(LINES, 200 * rounds) for each in (line, "isready")] + ["uci"]
    said, commands = talk(server, *lines), [line.split()[:1] for line in lines]
    assert said.count("readyok") == commands.count(["isready"])
    assert sum(line.startswith("bestmove ") for line in said) == commands.count(["go"])
    assert said[-1] == "uciok"


def test_infinite_runs_until_stop(server):
    """It waits even when the tree is full, and answers `isready` meanwhile."""
    write = io.StringIO()
    arrived, lines = threading.Event(), ["go infinite\n", "isready\n", "stop\n", "isready\n", "quit\n"]

    def typed():
        yield from lines[:2]
        while "readyok" not in write.getvalue():
            time.sleep(0.01)
        time.sleep(0.3)
        assert "bestmove" not in write.getvalue()
        arrived.set()
        yield from lines[2:]

    slow = typed()
    server.serve(SimpleNamespace(readline=lambda _: next(slow, "")), write)
    assert arrived.is_set()
    said = [line.split()[0] for line in write.getvalue().splitlines()]
    assert sorted(said[:-2]) == ["info", "readyok"]
    assert said[-2:] == ["bestmove", "readyok"]


def test_infinite_stops_at_the_end_of_input(server, monkeypatch):
    *_, progress = thinker().think(server._game.position.state, 4)

    def think(*_):
        for _ in range(1000):
            yield progress
            time.sleep(0.01)
        pytest.fail("the search went on")

    monkeypatch.setattr(server, "_thinker", SimpleNamespace(think=think))
    assert [line.split()[0] for line in talk(server, "go infinite")] == ["info", "bestmove"]


def test_options_during_a_search_do_not_end_it(server):
    lines = ("go nodes 40", "debug on", "register later", "setoption name UCI_ShowWDL value true", "isready")
    said = talk(server, *lines)
    assert [line.split()[0] for line in said] == ["readyok", "info", "bestmove"]
    assert " nodes 40 " in said[1]
    assert " wdl " in said[1]


@pytest.mark.parametrize("number", ["10000000000", "9" * 5000, "0" * 30 + "64"])
def test_a_large_number_is_a_limit_as_well(server, number):
    assert " nodes 64 " in talk(server, f"go nodes {number}")[-2]
    assert server._read_limits(["wtime", f"-{number}"]) == {"wtime": -min(10**9, int(number[:99]))}


@pytest.mark.parametrize(("go", "says"), [("nodes 64", False), ("nodes 65", True), ("infinite nodes 65", False)])
def test_more_nodes_than_the_tree_holds_are_reported(server, go, says):
    note = "info string nodes 65: at most 64 are searched; start with a larger --max_simulations"
    assert (note in talk(server, f"go {go}")) == says


def test_a_line_that_is_too_long_is_refused(server):
    too_long = "info string the line has more than 1,048,576 characters; send a shorter one"
    said = talk(server, "go nodes 8", "isready" + " " * 2**20, "isready")
    assert [said[-2], said[-1]] == [too_long, "readyok"]
    assert said.count("readyok") == 1


REFUSED = {
    "position startpos moves e2e5": "e2e5 is illegal here",
    "position startpos moves e2e4 e2e4": "e2e4 is illegal here",
    "position fen 8/8/8/8/8/8/8/8 w - - 0 1": "each side needs one king",
    "position": "has 0 fields",
}


@pytest.mark.parametrize(("line", "message"), REFUSED.items())
def test_invalid_positions_clear_the_board(server, line, message):
    said = talk(server, line, "go", "ucinewgame", "go", "frobnicate")
    assert said[0].startswith("info string invalid position: ")
    assert message in said[0]
    assert said[1:3] == ["info string there is no position", "bestmove (none)"]
    assert said[-2].startswith("bestmove ")
    assert said[-1] == "info string unknown command frobnicate"


def test_our_own_controller_plays_a_game(tmp_path):
    """Runs the engine as a subprocess with an untrained network; every move is legal."""
    config, game = tiny_config(), make_game("chess")
    config.boards = ("chess",)
    params = make_params(game, make_configured_network(config, game), jax.random.key(0))
    weight_files.write(tmp_path / "chess.safetensors", params, config, 0)
    command = f"{sys.executable} -m alphagat uci {tmp_path / 'chess.safetensors'} --max_simulations 16"
    options = {"Simulations": "2", "Hash": "512", "Threads": "4", "Move Overhead": "100", "UCI_ShowWDL": "true"}
    with UciEngine(game, command, nodes=2, options=options) as engine:
        last = play_against_random(engine, game, 0)[-1]
    board = chess.Board()
    for move in last.moves:
        board.push(board.parse_uci(move))
    assert len(last.moves) > 10


def test_centipawns_are_a_tangent_of_the_value():
    assert [centipawns(value) for value in (0, 0.5, -0.5, 1, -1)] == [0, 100, -100, 12800, -12800]


def test_a_move_that_was_taken_back_is_not_in_the_next_position(server):
    talk(server, "position startpos moves e2e4 e7e5", "position startpos moves d2d4")
    assert server._game.position.moves == ("d2d4",)


def test_positions_and_moves_compile_nothing():
    jax.clear_caches()
    server, names = UciServer(Thinker(thinker().agent, max_simulations=8, keeps_tree=True), 8, "1.2.3"), compiled()
    names.clear()
    talk(server, "go nodes 8", "position startpos moves e2e4 e7e5", "go nodes 8")
    talk(server, "position fen r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 99 1 moves e1g1", "go nodes 8")
    assert names == []


@pytest.mark.parametrize("reports", [False, True], ids=["at once", "after a report"])
def test_a_search_that_fails_still_moves(server, monkeypatch, reports):
    fen, mate = next(iter(MATES.items()))
    talk(server, f"position fen {fen}")
    analysis = thinker().analyze(server._game.position.state, 64)

    def think(*_):
        if reports:
            yield Progress(64, 64, 1.5, lambda: analysis)
        raise MemoryError("no space\nleft")

    monkeypatch.setattr(thinker(), "think", think)
    *_, error, best = talk(server, "go nodes 64")
    assert error == "info string internal error: MemoryError: no space"
    assert (best == f"bestmove {mate}") == reports
    assert best.removeprefix("bestmove ") in server._game.position.legal_actions()
    assert talk(server, "isready") == ["readyok"]


def test_a_search_that_fails_waits_for_stop(server, monkeypatch):
    monkeypatch.setattr(server, "_thinker", SimpleNamespace(think=lambda *_: 1 / 0))
    said = talk(server, "go infinite", "isready", "stop")
    assert [line.split()[0] for line in said] == ["info", "readyok", "bestmove"]
