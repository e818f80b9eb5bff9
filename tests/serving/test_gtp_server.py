"""Tests the GTP engine: golden transcripts, complete games, time control and errors."""

import functools
import io
import itertools
import re
import sys
import time
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from alphagat.errors import UserError
from alphagat.evaluation.engines.gtp import GtpEngine
from alphagat.evaluation.live_game import LiveGame
from alphagat.games import make_game
from alphagat.serving.protocols.clock import less_lag
from alphagat.serving.protocols.gtp_names import handicap_points, most_handicap
from alphagat.serving.protocols.gtp_score import score
from alphagat.serving.protocols.gtp_server import GtpServer
from alphagat.serving.protocols.move_reports import MoveReport, gtp_info
from alphagat.serving.protocols.thinking import Thinker
from tests.evaluation.host_games import begin, play, play_against_random
from tests.fuzz import line_mutants
from tests.search.evaluators import uniform_evaluator
from tests.serving.agents import make_agent
from tests.serving.compilations import compiled


@functools.cache
def thinker_of(board):
    return Thinker(make_agent(board, uniform_evaluator), max_simulations=64)


def make_server(board, simulations=16):
    return GtpServer(thinker_of, thinker_of(board), simulations, "1.2.3")


def talk(server, *lines):
    """Returns the answers to the lines, without the terminating blank lines."""
    out = io.StringIO()
    server.serve(io.StringIO("\n".join(lines) + "\n"), out)
    assert out.getvalue().endswith("\n\n")
    return out.getvalue()[:-2].split("\n\n")


def test_a_golden_transcript():
    server = make_server("hex:3")
    transcript = {
        "1 protocol_version": "=1 2",
        "name # who are you": "= AlphaGAT",
        "# nothing but a comment": None,
        "": None,
        "2\tversion": "=2 1.2.3",
        "known_command genmove": "= true",
        "known_command komi": "= false",
        "30 play black b2": "=30",
        "play W A1": "=",
        "showboard": "= \n   a b c\n 1 o . .\n  2 . x .\n   3 . . .\nx to move, top to bottom",
        "play w a2": "? illegal move: black is to move",
        "play b b2": "? illegal move: b2 is illegal here",
        "play b z9": "? illegal move: z9 is illegal here",
        "7 play green a2": "?7 syntax error: green is not a colour",
        "play b": "? syntax error: too few or too many words",
        "loadsgf x": "? unknown command",
        "final_score": "? cannot score: the game is not over",
        "play b b3": "=",
        "undo": "=",
        "genmove b": None,
        "final_score ": None,
    }
    answers = talk(server, *transcript, "quit")
    expected = [answer for line, answer in transcript.items() if answer is not None]
    assert answers[: len(expected)] == expected
    move, score, goodbye = answers[len(expected) :]
    assert re.fullmatch("= [abc][123]", move)
    assert score == "? cannot score: the game is not over"
    assert goodbye == "="


def test_finds_a_win_and_scores_the_game():
    server = make_server("hex:3", 64)
    answers = talk(server, "play b b1", "play w a2", "play b b2", "play w a1", "genmove b", "final_score", "genmove w")
    assert answers[4] in ("= b3", "= a3")
    assert answers[5:] == ["= B+", "? the game is over"]
    assert talk(server, "undo", "final_score")[1] == "? cannot score: the game is not over"
    moves = ("play b a1", "play w a2", "play b b1", "play w b2", "play b c1", "play w c2")
    assert talk(server, "clear_board", *moves, "final_score")[-1] == "= W+"


# White repeats a position of Go 5x5, and Black has more stones.
REPEATS = "e3 pass d5 pass a2 c2 b2 d1 e5 b1 e4 a1 c1 b1"


def test_a_win_by_repetition_has_no_points():
    server, moves = make_server("go:5:0.5"), REPEATS.split()
    played = talk(server, *(f"play {'bw'[ply % 2]} {move}" for ply, move in enumerate(moves)), "final_score")
    assert played == ["="] * len(moves) + ["= B+"]


@pytest.mark.parametrize("board", ["hex:3:swap", "othello:4", "connect_four", "go:5:0.5", "breakthrough:5"])
def test_complete_games_follow_the_rules(board):
    """The engine's board matches the rules after every move."""
    server, game = make_server(board, 4), make_game(board)
    (listed,) = talk(server, "list_commands")
    assert set(listed.removeprefix("= ").split()) > {"play", "genmove", "undo", "boardsize", "clear_board", "quit"}
    for seed in range(4):
        random, position, passes = np.random.default_rng(seed), begin(game), 0
        assert talk(server, "clear_board") == ["="]
        while not position.state.terminated:
            legal, colour = position.legal_actions(), ("black", "white")[position.player]
            if position.player == seed % 2:
                (answer,) = talk(server, f"genmove {colour}")
                name = answer.removeprefix("= ").lower().replace("swap-pieces", "swap")
                assert name in legal
            else:
                name = str(random.choice(list(legal)))
                forced = list(legal) == ["pass"] and board.startswith("othello")
                if not forced:  # Othello's passes may be omitted
                    assert talk(server, f"play {colour} {name.upper()}") == ["="]
                passes += forced
            position = play(position, legal[name])
            if not (passes and name == "pass"):
                assert talk(server, "showboard") == [f"= \n{game.render(position.state)}"]
        (score,) = talk(server, "final_score")
        assert {"B": 1, "W": -1, "0": 0}[score[2]] == position.state.rewards[0]


def test_white_moves_first_in_chess():
    """White is mated in two moves."""
    server = make_server("chess", 1)
    moves = ("play white f2f3", "play b e7e5", "play w g2g4", "play b d8h4")
    assert talk(server, "play b e7e5", *moves, "final_score") == ["? illegal move: white is to move", *"====", "= B+"]


def test_a_swap_follows_the_convention_of_hex_programs():
    server = make_server("hex:3:swap")
    assert talk(server, "play b a2", "play w swap-pieces") == ["=", "="]
    swapped = talk(server, "showboard")
    assert talk(server, "clear_board", "play w b1") == ["=", "="]
    assert talk(server, "showboard") == swapped
    assert talk(server, "undo", "undo") == ["=", "? cannot undo"]
    assert talk(server, "play b swap-pieces") == ["? illegal move: swap is illegal here"]
    for name in ("a99", "a0", "d1", "swap-pieces"):
        assert talk(server, f"play w {name}") == [f"? illegal move: {name.replace('-pieces', '')} is illegal here"]


def test_boards_of_the_family_and_komi():
    server = make_server("go:5")
    assert talk(server, "play b c3", "boardsize 6", "showboard")[2].count("\n") == 8
    assert talk(server, "boardsize 4", "boardsize x") == [
        "? unacceptable size",
        "? syntax error: x is not a whole number",
    ]
    assert "move 0" in talk(server, "showboard")[0]
    talk(server, "boardsize 5", "play b c3", "play w pass")
    assert talk(server, "final_score", "komi 0.5", "final_score", "komi 24.5", "final_score") == [
        "= B+17.5",
        "=",
        "= B+24.5",
        "=",
        "= B+0.5",
    ]
    answers = talk(server, "komi 25.5", "final_score", "undo", "undo", "undo")
    assert answers == ["=", "= W+0.5", "=", "=", "? cannot undo"]
    (refused,) = talk(server, "komi 7")
    assert refused.startswith("? komi 7 is invalid: use one that ends in .5")
    assert talk(make_server("connect_four"), "boardsize 7", "boardsize 9") == ["=", "? unacceptable size"]


def test_a_board_may_be_given_by_width_and_height():
    server = make_server("hex:3")
    answers = talk(server, "boardsize 4 4", "showboard", "boardsize 3 4", "boardsize 5 x", "boardsize 5 5 5")
    assert answers[0] == "="
    assert answers[1].startswith("= \n   a b c d\n")
    assert answers[2:] == [
        "? unacceptable size",
        "? syntax error: x is not a whole number",
        "? syntax error: too few or too many words",
    ]


def test_the_same_komi_makes_no_second_player():
    made = []
    server = GtpServer(lambda name: made.append(name) or thinker_of(name), thinker_of("go:5"), 16, "1.2.3")
    komi = server._turns.game.komi
    assert talk(server, "play b c3", f"komi {komi:g}", f"komi {komi}0", "undo") == ["="] * 4
    assert made == []


@pytest.mark.parametrize("dialect", ["lz", "kata"])
def test_an_analysis_ends_with_the_next_line(dialect):
    server = make_server("go:5")
    answers = talk(server, "play b c3", f"5 {dialect}-analyze w 10", "play w c4")
    assert [answers[0], answers[2]] == ["=", "="]
    first, *reports = answers[1].split("\n")
    assert first == "=5"
    number = r"-?[0-9]+" if dialect == "lz" else r"-?[0-9]\.[0-9]{6}"
    utility = f"utility {number} " if dialect == "kata" else ""
    vertex = "(?:[A-HJ][1-5]|pass)"
    rates = rf"{utility}winrate ({number}) prior {number}"
    info = rf"info move ({vertex}) visits ([0-9]+) {rates} order ([0-9]+) pv ((?:{vertex} ?)+)"
    assert re.fullmatch(f"(?:{info})+", reports[-1])
    moves = re.findall(info, reports[-1])
    assert len(moves) > 1
    assert [int(order) for *_, order, _ in moves] == list(range(len(moves)))
    visits = [int(visits) for _, visits, *_ in moves]
    assert visits == sorted(visits, reverse=True)
    assert all(line.split()[0] == name for name, *_, line in moves)
    scale = 10000 if dialect == "lz" else 1
    assert all(0 <= float(rate) / scale <= 1 for _, _, rate, *_ in moves)
    (refused,) = talk(server, f"{dialect}-analyze b 10 avoid b c3 1")
    assert refused.startswith("? syntax error: avoid is unknown")


@pytest.mark.parametrize("dialect", ["lz", "kata"])
def test_a_move_with_its_analysis(dialect, monkeypatch):
    """The next line does not end it."""
    server = make_server("hex:3", 64)
    monkeypatch.setattr(server._thinker, "speed", 1.0)  # so that it takes several slices
    talk(server, "play b b1", "play w a2", "play b b2", "play w a1")
    command = f"{dialect}-genmove_analyze"
    refused, answer, score = talk(server, f"{command} w", f"7 {command} b 1", "final_score")
    assert refused == "? black is to move"
    first, *reports, played = answer.split("\n")
    assert first == "=7"
    assert all(line.startswith("info move ") for line in reports)
    best = re.search(r"^info move (\S+) .* order 0 ", reports[-1])[1]
    assert sum(map(int, re.findall(" visits ([0-9]+)", reports[-1]))) == 64
    assert best in ("a3", "b3")
    assert played == f"play {best}"
    assert score == "= B+"
    assert talk(server, f"{command} w", "undo", f"known_command {command}") == ["? the game is over", "=", "= true"]


def test_a_move_with_its_analysis_spends_the_clock(monkeypatch):
    server, requests = make_server("hex:3", None), []
    *_, progress = server._thinker.think(server._turns.position.state, 4)

    def think(state, simulations, seconds):
        requests.append((simulations, seconds))
        yield progress._replace(seconds=8.0)

    monkeypatch.setattr(server._thinker, "think", think)
    talk(server, "time_settings 800 0 0", "lz-genmove_analyze 1")
    assert requests == [(None, pytest.approx(less_lag(800 / 8)))]
    assert [clock.main for clock in server._clocks] == [792, 800]


def test_only_the_last_boards_are_kept():
    made = []
    server = GtpServer(lambda name: made.append(name) or thinker_of(name), thinker_of("hex:3"), 4, "1.2.3")
    for size in (4, 5, 3, 4, 6, 3, 4, 5):
        talk(server, f"boardsize {size}")
    assert made == ["hex:4", "hex:5", "hex:6", "hex:5"]


def test_the_interval_of_an_analysis_is_in_centiseconds():
    server = make_server("hex:3")
    server.answer(["lz-analyze", "50"])
    assert server._analysis is not None
    assert server._analysis[1] == 0.5


OUTPUT = "ownership true ownershipStdev true movesOwnership true rootInfo true minmoves 2 maxmoves 3 pvVisits true"


@pytest.mark.parametrize(
    "words", [f"b 10 {OUTPUT}", f"{OUTPUT} 10", "b pvEdgeVisits true interval 10 noResultValue true"]
)
def test_options_of_an_analysis_that_change_only_its_output_are_ignored(words):
    server = make_server("hex:3")
    (answer,) = talk(server, f"kata-analyze {words}")
    assert answer.startswith("=\ninfo move ")
    refused = talk(server, "kata-analyze 10 ownership", "kata-analyze 10 allow b c3 1", "kata-analyze 10 rootinfo true")
    assert refused[0] == "? syntax error: ownership has no value"
    assert refused[1].startswith("? syntax error: allow is unknown")
    assert refused[2].startswith("? syntax error: rootinfo is unknown")


@pytest.mark.parametrize("dialect", ["lz", "kata"])
def test_an_analysis_may_omit_a_forced_pass(dialect):
    """It leaves the game as it was: the pass may still be played, and `undo` takes back the last move."""
    server, game = make_server("othello:4"), make_game("othello:4")
    position, random = begin(game), np.random.default_rng(0)
    while list(position.legal_actions()) != ["pass"]:
        position = begin(game) if position.state.terminated else position
        position = play(position, random.choice(list(position.legal_actions().values())))
    played = [f"play {'bw'[player]} {move}" for player, move in zip(position.players, position.moves)]
    mover, other = "bw"[position.player], "bw"[1 - position.player]
    before = talk(server, *played, "showboard")[-1]
    analysis, shown = talk(server, f"{dialect}-analyze {other} 10", "showboard")
    after = play(position, position.legal_actions()["pass"]).legal_actions()
    assert set(re.findall("info move ([a-d][1-4])", analysis)) == set(after)
    assert shown == before
    assert talk(server, f"play {mover} pass", f"lz-analyze {mover} 10", "undo", "showboard")[1:] == [
        f"? {('black', 'white')[1 - position.player]} is to move",
        "=",
        before,
    ]
    talk(server, f"{dialect}-analyze {other} 10", "undo")
    assert talk(server, played[-1], "showboard") == ["=", before]


def test_a_forced_win_has_the_full_winrate():
    server = make_server("hex:3", 64)
    talk(server, "play b b1", "play w a2", "play b b2", "play w a1")
    report = talk(server, "lz-analyze", "name")[0]
    best = re.search(r"info move (b3|a3) visits [0-9]+ winrate ([0-9]+) prior [0-9]+ order 0 pv (b3|a3)( |$)", report)
    assert best[2] == "10000"


def listen(server):
    """Makes the searches of a server short; returns a list to which each adds its limits of simulations and seconds."""
    limits, thinker = [], server._thinker

    class Listening:
        agent = thinker.agent

        @staticmethod
        def analyze(state, simulations, seconds):
            limits.append((simulations, None if seconds is None else round(seconds, 4)))
            return thinker.analyze(state, 4)

    server._thinker = Listening
    return limits


def share(seconds):
    """Returns the expected limit of a search."""
    return round(less_lag(seconds), 4)


def test_the_clock_limits_the_search():
    server = make_server("hex:3", None)
    limits = listen(server)
    talk(server, "time_settings 0 10 1", "genmove b")  # ten seconds per move, less the lag
    talk(server, "time_left w 30 3", "genmove w")
    talk(server, "kgs-time_settings absolute 80", "genmove b")
    talk(server, "time_settings 0 1 0", "genmove w")
    assert limits == [(None, 9.45), (None, 9.45), (None, 9.45), (32, None)]
    answers = talk(server, "kgs-time_settings byoyomi 1", "time_left w x 3", "kgs-time_settings none")
    assert [answer[0] for answer in answers] == ["?", "?", "="]


def test_each_player_spends_its_own_main_time(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: 8.0 * next(ticks))  # every move takes 8 s or more
    server = make_server("hex:5", None)
    limits = listen(server)
    talk(server, "time_settings 800 0 0", "genmove b", "genmove w", "genmove b")
    first, second, third = (seconds for _, seconds in limits)
    assert first == second == share(800 / 8)
    assert third <= share(792 / 8)


def test_a_clock_with_main_time_left_keeps_its_overtime():
    server = make_server("hex:3", None)
    limits = listen(server)
    talk(server, "time_settings 80 10 2", "time_left b 40 0", "genmove b")
    assert limits == [(None, share(40 / 8 + 10 / 2))]


def test_the_moves_of_a_canadian_period_share_it():
    server = make_server("hex:3", None)
    limits = listen(server)
    talk(server, "kgs-time_settings canadian 80 10 5", "genmove b", "kgs-time_settings byoyomi 80 10 3", "genmove w")
    assert limits == [(None, share(80 / 8 + 10 / 5)), (None, share(80 / 8 + 10))]


def test_the_moves_that_are_left_share_main_time():
    """Estimated as a quarter of the plies that are left."""
    server = make_server("hex:7", None)
    limits = listen(server)
    moves = ("play b a1", "play w b1", "play b a2", "play w b2", "play b a3", "play w b3")
    talk(server, *moves, "time_settings 100 0 0", "genmove b")
    assert limits == [(None, share(100 / ((49 - 6) // 4)))]


def test_a_new_game_forgets_the_search(monkeypatch):
    server, forgotten = make_server("hex:3"), []
    monkeypatch.setattr(server._thinker, "forget", lambda: forgotten.append(True))
    talk(server, "clear_board")
    assert forgotten == [True]


def test_the_prior_of_an_analysis_is_in_ten_thousandths():
    move = MoveReport("c3", 5, 0.0, 0.25, 0, ("c3",))
    assert " visits 5 winrate 5000 prior 2500 order 0 pv " in gtp_info(
        "lz", make_agent("hex:3", uniform_evaluator).game, move
    )


def test_the_final_score_is_the_difference_of_discs():
    generator, signs = np.random.default_rng(0), set()
    for _ in range(6):
        live = LiveGame(make_game("othello:4"))
        while not live.is_over:
            live.play_action(int(generator.choice(list(live.position.legal_actions().values()))))
        cells = [cell for line in live.game.render(live.position.state).splitlines()[1:5] for cell in line.split()[1:]]
        lead = cells.count("x") - cells.count("o")
        assert score(live) == (f"B+{lead}" if lead > 0 else f"W+{-lead}" if lead < 0 else "0")
        signs.add(np.sign(lead))
    assert {1, -1} <= signs


def test_a_new_komi_keeps_the_game_and_its_clocks():
    server = make_server("go:5", None)
    talk(server, "time_settings 100 0 0", "play b c3", "time_left b 20 0", "komi 5.5")
    black, white = server._clocks
    assert (black.main, white.main) == (20, 100)
    assert talk(server, "play b c3")[0][0] == "?"
    talk(server, "clear_board")
    assert [clock.main for clock in server._clocks] == [100, 100]


def test_a_given_number_of_simulations_limits_a_search_with_a_clock():
    server = make_server("hex:3", 16)
    limits = listen(server)
    talk(server, "time_settings 0 10 1", "genmove b")
    assert limits == [(16, share(10))]


def test_an_internal_error_does_not_end_the_game(monkeypatch):
    server = make_server("hex:3")
    monkeypatch.setattr(server._turns.game, "render", lambda state: 1 / 0)
    assert talk(server, "showboard", "play b a1") == [
        "? internal error: ZeroDivisionError: division by zero",
        "=",
    ]


def test_a_failed_analysis_does_not_end_the_game(monkeypatch):
    server = make_server("hex:3")
    monkeypatch.setattr(server, "_thinker", SimpleNamespace(think=lambda *_: 1 / 0))
    assert talk(server, "4 lz-analyze", "5 play b a1") == [
        "=4\ninternal error: ZeroDivisionError: division by zero",
        "=5",
    ]


def test_unsupported_games_raise():
    with pytest.raises(UserError, match=r"board 2048: .* a game for two players without chance"):
        make_server("2048")


def test_our_own_controller_plays_a_game():
    """Runs the engine as a subprocess. The shipped network beats random moves."""
    game = make_game("hex:3")
    command = f"{sys.executable} -m alphagat gtp --board hex:5 --simulations 8"
    with GtpEngine(game, command, seconds=1.0, grace=60.0) as engine:
        for seed in range(2):
            last = play_against_random(engine, game, seed)[-1]
            assert last.state.rewards[seed % 2] == 1


LINES = (
    *("protocol_version", "known_command play", "list_commands", "boardsize 3", "clear_board", "komi 6.5"),
    *("play b a1", "play white b2", "play w swap-pieces", "genmove b", "genmove white", "undo", "showboard"),
    *("final_score", "time_settings 0 1 1", "time_settings 60 0 0", "time_left b 5 0", "kgs-time_settings none"),
    *("kgs-time_settings byoyomi 5 1 3", "lz-analyze b 10", "kata-analyze interval 5", "play b a1 # comment"),
    *(
        "lz-genmove_analyze b 10",
        "kata-genmove_analyze 5",
        "kata-analyze 10 ownership true",
        "kata-analyze b minmoves 3 interval 5",
    ),
)


def test_damaged_lines_are_answered_once_each(rounds: int):
    def make_known(board):
        if board != "hex:3":
            raise UserError(f"board {board}: not here")
        return thinker_of(board)

    server, out = GtpServer(make_known, thinker_of("hex:3"), 2, "1.2.3"), io.StringIO()
    lines = [f"{number} {line}" for number, line in enumerate(line_mutants(LINES, 500 * rounds))] + ["99999999 name"]
    server.serve(io.StringIO("\n".join(lines) + "\n"), out)
    words = [re.sub(r"[\x00-\x08\x0a-\x1f\x7f]", "", line).partition("#")[0].split() for line in lines]
    assert re.findall("(?m)^[=?]([0-9]+)", out.getvalue()) == [each[0] for each in words if len(each) > 1]
    assert out.getvalue().endswith("=99999999 AlphaGAT\n\n")
    assert "internal error" not in out.getvalue()


def test_a_board_of_another_size_keeps_the_swap_rule():
    assert talk(make_server("hex:3:swap"), "boardsize 4", "play b a2", "play w swap-pieces") == ["="] * 3


def test_an_analysis_is_written_once_per_interval(monkeypatch):
    server, out, times = make_server("hex:3"), io.StringIO(), (0.3, 0.6, 0.9, 1.2)
    *_, progress = server._thinker.think(server._turns.position.state, 4)
    monkeypatch.setattr(server._thinker, "think", lambda *_: (progress._replace(seconds=spent) for spent in times))
    server.answer(["lz-analyze", "50"])
    arrived = itertools.chain([False] * len(times), itertools.repeat(True))
    server._analyze(SimpleNamespace(has_more=lambda: next(arrived)), out)
    assert out.getvalue().count("\n") == 2


def test_a_line_that_is_too_long_is_refused():
    answers = talk(make_server("hex:3"), "3 play black b2" + " " * 2**20, "play black b2" + " " * 1000)
    assert answers == ["?3 the line has more than 1,048,576 characters; send a shorter one", "="]


def test_an_illegal_move_takes_back_an_omitted_pass():
    server, position, random = make_server("othello:4"), begin(make_game("othello:4")), np.random.default_rng(0)
    while list(position.legal_actions()) != ["pass"]:
        position = begin(position.game) if position.state.terminated else position
        position = play(position, random.choice(list(position.legal_actions().values())))
    played = [f"play {'bw'[player]} {move}" for player, move in zip(position.players, position.moves)]
    mover, other = "bw"[position.player], "bw"[1 - position.player]
    answers = talk(server, *played, f"play {other} {position.moves[0]}", f"play {mover} pass")
    assert (answers[-2][0], answers[-1]) == ("?", "=")


@pytest.mark.parametrize("genmove", ["genmove b", "lz-genmove_analyze b"])
def test_a_player_of_go_may_move_twice(genmove):
    server = make_server("go:5")
    talk(server, "play b c3", "play b d4", genmove, "lz-analyze b 1", "showboard")
    assert server._turns.position.moves[:4] == ("c3", "pass", "d4", "pass")
    assert server._turns.position.players == (0, 1, 0, 1, 0)
    assert talk(server, *["undo"] * 3, "undo") == ["="] * 3 + ["? cannot undo"]


def test_a_pass_that_ends_the_game_may_not_be_omitted():
    reason = "white is to move, and its pass would end the game"
    answers = talk(make_server("go:5"), "play b pass", "play b d4", "genmove b", "lz-analyze b", "play w d4")
    assert answers == ["=", f"? illegal move: {reason}", f"? {reason}", f"? {reason}", "="]


# Of the table in the specification of GTP 2.
HANDICAPS = {
    (19, 2): "D4 Q16",
    (19, 4): "D4 Q16 D16 Q4",
    (19, 5): "D4 Q16 D16 Q4 K10",
    (19, 6): "D4 Q16 D16 Q4 D10 Q10",
    (19, 7): "D4 Q16 D16 Q4 D10 Q10 K10",
    (19, 9): "D4 Q16 D16 Q4 D10 Q10 K4 K16 K10",
    (9, 3): "C3 G7 C7",
}


@pytest.mark.parametrize(("size", "number"), HANDICAPS)
def test_a_fixed_handicap_has_the_points_of_the_specification(size, number):
    assert " ".join(handicap_points(size, number)).upper() == HANDICAPS[size, number]


def test_the_largest_handicap_depends_on_the_board():
    assert [most_handicap(size) for size in (5, 6, 7, 8, 9, 10, 19)] == [0, 0, 4, 4, 9, 4, 9]


def test_after_a_handicap_white_moves():
    server = make_server("go:7")
    assert talk(server, "fixed_handicap 3", "play w d4", "final_status_list alive") == [
        "= C3 E5 C5",
        "=",
        "= C5 E5 D4 C3",
    ]
    assert server._turns.position.players[-1] == 1
    assert talk(server, "fixed_handicap 2", "undo", "undo", "undo") == ["? board not empty", "=", "=", "? cannot undo"]
    assert (
        talk(server, "fixed_handicap 5", "fixed_handicap 1", "place_free_handicap 1")
        == ["? invalid number of stones"] * 3
    )
    assert talk(server, "place_free_handicap 5", "clear_board") == ["= C3 E5 C5 E3", "="]
    for vertices in ("a1", "a1 a1", "a1 pass", "a1 b1 z1"):
        assert talk(server, f"set_free_handicap {vertices}") == ["? bad vertex list"]
    assert talk(server, "set_free_handicap a1 G7", "final_status_list alive") == ["=", "= G7 A1"]


def test_small_boards_have_no_fixed_handicap():
    answers = talk(make_server("go:5"), "fixed_handicap 2", "place_free_handicap 2", "set_free_handicap a1 b1")
    assert answers == ["? invalid number of stones"] * 2 + ["="]


def test_all_stones_of_go_are_alive_in_the_end():
    server = make_server("go:5")
    answers = talk(
        server, "play b c3", "play w d4", *(f"final_status_list {each}" for each in ("alive", "dead", "seki"))
    )
    assert answers[2:] == ["= D4 C3", "=", "="]
    (refused,) = talk(server, "final_status_list black_territory")
    assert refused == "? syntax error: black_territory is unknown; expected alive, seki or dead"
    assert talk(make_server("hex:3"), "final_status_list alive") == ["? unknown command"]


def test_the_periods_of_byoyomi_do_not_share_its_time():
    server = make_server("hex:3", None)
    limits = listen(server)
    talk(server, "kgs-time_settings byoyomi 0 30 5", "time_left b 30 5", "genmove b")
    talk(server, "clear_board")
    of_next_game = listen(server)
    talk(server, "time_left b 30 5", "genmove b")
    assert limits == of_next_game == [(None, share(30))]


def test_white_does_not_begin_without_the_swap_rule():
    assert talk(make_server("hex:3"), "play w a1") == ["? illegal move: black is to move"]


def test_moves_and_analyses_compile_nothing():
    jax.clear_caches()
    agent = make_agent("breakthrough:5", uniform_evaluator)  # the names of its moves depend on the position
    server = GtpServer(thinker_of, Thinker(agent, max_simulations=64, keeps_tree=True), 8, "1.2.3")
    names = compiled()
    names.clear()
    answers = talk(server, "genmove b", "lz-analyze 1", "genmove w", "genmove b")
    assert [answer[0] for answer in answers] == ["="] * 4
    assert names == []
