"""Tests analysis over JSON lines: results, batches and errors."""

import functools
import io
import json

import jax
import numpy as np
import pytest

from alphagat.agents.analysis import Analyzer
from alphagat.cli import analyze
from alphagat.errors import UserError
from alphagat.games import make_game
from alphagat.serving.protocols import json_server
from alphagat.serving.protocols.json_server import JsonServer
from tests.evaluation.host_games import position_after
from tests.fuzz import line_mutants
from tests.search.evaluators import make_table_evaluator, uniform_evaluator
from tests.serving.agents import make_agent

BOARD, SIMULATIONS, BATCH = "tic_tac_toe", 12, 4
MOVES = ["b2", "a1", "c1", "a3", "a2", "c2"]


def open_agent(board):
    if board == "nowhere":
        raise UserError("board nowhere: there is no such game")
    if board in (None, BOARD):
        return make_agent(BOARD, make_table_evaluator(make_game(BOARD)))
    return make_agent(board, uniform_evaluator)


def make_server():
    return JsonServer(open_agent, simulations=SIMULATIONS, max_simulations=100, batch_size=BATCH)


def ask(*queries, server=None):
    out = io.StringIO()
    lines = [query if isinstance(query, str) else json.dumps(query) for query in queries]
    (server or make_server()).serve(io.StringIO("\n".join(lines) + "\n"), out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


@functools.cache
def analysis_after(num_moves, simulations):
    position = position_after(BOARD, *MOVES[:num_moves])
    states = jax.tree.map(lambda x: x[None], position.state)
    analysis = Analyzer(open_agent(None), simulations)(states, jax.random.key(0))
    return position, jax.tree.map(lambda x: x[0], analysis)


@pytest.mark.parametrize("coloured", [False, True])
def test_answers_match_the_analyzer(coloured):
    """The query has more turns than fit in a batch."""
    moves = [["BW"[ply % 2], name.upper()] for ply, name in enumerate(MOVES)] if coloured else MOVES
    answers = ask({"id": "x", "moves": moves, "analyzeTurns": list(range(7))})
    assert sorted(answer["turnNumber"] for answer in answers) == list(range(7))
    for answer in answers:
        position, analysis = analysis_after(answer["turnNumber"], SIMULATIONS)
        legal, root = position.legal_actions(), answer["rootInfo"]
        assert answer["id"] == "x"
        assert root["currentPlayer"] == "BW"[position.player]
        assert root["visits"] == SIMULATIONS == sum(move["visits"] for move in answer["moveInfos"])
        assert root["winrate"] == pytest.approx((1 + analysis.value) / 2, abs=1e-5)
        assert root["rawWinrate"] == pytest.approx((1 + analysis.network_value) / 2, abs=1e-5)
        for order, move in enumerate(answer["moveInfos"]):
            action = legal[move["move"]]
            assert move["order"] == order
            assert (action == analysis.action) == (order == 0)
            assert move["visits"] == analysis.visits[action]
            assert move["prior"] == pytest.approx(analysis.prior[action], abs=1e-5)
            assert move["winrate"] == pytest.approx((1 + analysis.action_values[action]) / 2, abs=1e-5)
            position_after(BOARD, *MOVES[: answer["turnNumber"]], *move["pv"])
            assert move["pv"][0] == move["move"]
        visits = [move["visits"] for move in answer["moveInfos"][1:]]
        assert visits == sorted(visits, reverse=True)


def test_the_default_number_of_visits_is_valid():
    server = JsonServer(open_agent, simulations=SIMULATIONS, max_simulations=1, batch_size=BATCH)
    answers = ask({"id": "default"}, {"id": "more", "maxVisits": SIMULATIONS + 1}, server=server)
    by_id = {answer["id"]: answer for answer in answers}
    assert by_id["default"]["rootInfo"]["visits"] == SIMULATIONS
    assert f"from 0 to {SIMULATIONS}" in by_id["more"]["error"]


def test_a_search_beyond_the_memory_is_an_error(monkeypatch):
    large, small = {"id": "large", "maxVisits": 100}, {"id": "small", "maxVisits": 0}
    monkeypatch.setattr("alphagat.runtime.memory.available_memory", lambda: 1000.0)
    refused, answered = sorted(ask(large, small), key=lambda answer: answer["id"])
    assert (refused["id"], refused["turnNumber"]) == ("large", 0)
    assert refused["error"].startswith("64 simulations for 1 game at once: the search trees need about")
    assert answered["rootInfo"]["visits"] == 0


def test_a_failed_batch_is_answered_and_the_next_one_too(monkeypatch):
    class Failing(Analyzer):
        def __call__(self, states, key):
            return 1 / 0 if len(states.terminated) == BATCH else super().__call__(states, key)

    monkeypatch.setattr("alphagat.serving.protocols.json_server.Analyzer", Failing)
    *failed, answered = ask({"id": "x", "moves": MOVES, "analyzeTurns": list(range(5))})
    error = "internal error: ZeroDivisionError: division by zero"
    assert failed == [{"id": "x", "turnNumber": turn, "error": error} for turn in range(BATCH)]
    assert answered["turnNumber"] == 4
    assert answered["rootInfo"]["visits"] == SIMULATIONS


def test_mixed_boards_and_visits_are_all_answered():
    queries = [
        {"id": f"{board} {visits} {row}", "board": board, "maxVisits": visits, "moves": ["b2"][:row]}
        for row in range(2)
        for board in ("hex:3", BOARD)
        for visits in (0, 5, SIMULATIONS)
    ]
    answers = ask(*queries)
    assert sorted(answer["id"] for answer in answers) == sorted(query["id"] for query in queries)
    made = {0: 0, 5: 4, SIMULATIONS: SIMULATIONS}  # rounded down to a power of two, except for the default
    for answer in answers:
        assert answer["rootInfo"]["visits"] == made[int(answer["id"].split()[1])]
        assert answer["rootInfo"]["currentPlayer"] == "BW"[answer["turnNumber"]]
        assert answer["moveInfos"]


def test_white_moves_first_in_chess():
    query = {
        "id": "x",
        "board": "chess",
        "moves": [["W", "e2e4"], ["b", "e7e5"]],
        "analyzeTurns": [0, 1],
        "maxVisits": 0,
    }
    assert [answer["rootInfo"]["currentPlayer"] for answer in ask(query)] == ["W", "B"]


def test_a_batch_is_one_call(monkeypatch):
    sizes = []

    class Listening(Analyzer):
        def __call__(self, states, key):
            sizes.append(len(states.terminated))
            return super().__call__(states, key)

    monkeypatch.setattr("alphagat.serving.protocols.json_server.Analyzer", Listening)
    ask({"id": "x", "moves": MOVES, "analyzeTurns": list(range(5))})
    assert sizes == [BATCH, 1]
    ask({"id": "x", "moves": MOVES, "analyzeTurns": list(range(6))})  # the last two are padded
    assert sizes == [BATCH, 1, BATCH, BATCH]


def test_answers_come_before_all_of_a_long_input_is_read():
    """The output shows it: an error is answered when its query is read."""
    queries = [{"id": str(number), "maxVisits": 0} for number in range(12 * BATCH)]
    answers = ask(*queries, {"id": "late", "maxVisits": -1})
    assert len(answers) == len(queries) + 1
    assert [answer["id"] for answer in answers].index("late") >= 5 * BATCH


def test_a_query_of_another_kind_does_not_wait_for_all_earlier_ones():
    many = [{"id": f"many {number}", "maxVisits": 0} for number in range(4 * BATCH)]
    server = JsonServer(open_agent, simulations=SIMULATIONS, max_simulations=100, batch_size=BATCH)
    answers = ask(*many[: 2 * BATCH], {"id": "other", "maxVisits": 1}, *many[2 * BATCH :], server=server)
    assert [answer["id"] for answer in answers].index("other") < 3 * BATCH + 1


def test_a_win_in_one_has_winrate_1_for_both_players():
    answers = ask(
        {"id": "black", "board": "hex:3", "moves": ["b1", "a2", "b2", "a1"], "maxVisits": 64},
        {"id": "white", "board": "hex:3", "moves": ["a1", "a2", "b1", "b2", "c1"], "maxVisits": 64},
    )
    for answer in answers:
        assert answer["moveInfos"][0]["winrate"] == 1
        assert answer["moveInfos"][0]["move"] in {"black": ("b3", "a3"), "white": ("c2",)}[answer["id"]]
        assert len(answer["moveInfos"][0]["pv"]) == 1
        assert answer["rootInfo"]["currentPlayer"] == answer["id"][0].upper()
        assert answer["rootInfo"]["winrate"] > 0.7


MISTAKES = {
    "{": (None, None, "invalid JSON"),
    "[1]": (None, None, "expected a JSON object"),
    '{"moves": []}': (None, "id", "the id must be a string"),
    '{"id": 3}': (None, "id", "the id must be a string"),
    '{"id": "x", "move": []}': ("x", "move", "unknown field; the fields are id, board"),
    '{"id": "x", "board": "nowhere"}': ("x", "board", "board nowhere: there is no such game"),
    '{"id": "x", "board": ["hex:3"]}': ("x", "board", "expected the name of a board, such as 'hex:5'"),
    '{"id": "x", "board": "2048"}': ("x", "board", "board 2048: analysis is for two-player games without chance; use"),
    '{"id": "x", "board": "tsp:5"}': ("x", "board", "board tsp:5: analysis is for two-player games"),
    '{"id": "x", "moves": "b2"}': ("x", "moves", "expected a list of moves"),
    '{"id": "x", "moves": ["b2", "b2"]}': ("x", "moves", "move 2: b2 is illegal here"),
    '{"id": "x", "moves": [["W", "b2"]]}': ("x", "moves", "move 1: black is to move"),
    '{"id": "x", "board": "hex:3:swap", "moves": [["W", "a9999999"]]}': ("x", "moves", "a9999999 is illegal here"),
    '{"id": "x", "moves": [["X", "b2"]]}': ("x", "moves", "move 1 is ['X', 'b2']; expected a name"),
    '{"id": "x", "moves": [7]}': ("x", "moves", "move 1 is 7; expected a name"),
    '{"id": "x", "analyzeTurns": [1]}': ("x", "analyzeTurns", "whole numbers from 0 to 0"),
    '{"id": "x", "analyzeTurns": [true]}': ("x", "analyzeTurns", "whole numbers from 0 to 0"),
    '{"id": "x", "analyzeTurns": []}': (
        "x",
        "analyzeTurns",
        "expected one or more whole numbers from 0 to 0, in a list",
    ),
    '{"id": "x", "analyzeTurns": [0, 0]}': ("x", "analyzeTurns", "0 is repeated; give each number once"),
    '{"id": "x", "maxVisits": 101}': ("x", "maxVisits", "expected a whole number from 0 to 100"),
    '{"id": "x", "maxVisits": 2.5}': ("x", "maxVisits", "expected a whole number from 0 to 100"),
    '{"id": "x", "moves": ["a1", "a2", "b1", "b2", "c1"]}': ("x", "analyzeTurns", "the game is over after 5 moves"),
}


@pytest.mark.parametrize(("line", "mistake"), MISTAKES.items())
def test_an_invalid_query_is_reported_and_the_next_one_answered(line, mistake):
    query_id, field, message = mistake
    answers = ask(line, "", {"id": "next", "maxVisits": 0})
    assert answers[0].get("id") == query_id
    assert answers[0].get("field") == field
    assert message in answers[0]["error"]
    assert [answer["id"] for answer in answers[1:]] == ["next"]


QUERIES = (
    '{"id": "q", "board": "tic_tac_toe", "moves": ["c3", ["W", "b2"]], "analyzeTurns": [1], "maxVisits": 0}',
    '{"id": "q", "moves": ["b2", "a1"], "maxVisits": 0}',
    '{"id": "q", "analyzeTurns": [0], "maxVisits": 0}',
)


def test_damaged_queries_are_answered_and_the_next_one_too(rounds: int):
    def open_known(board):
        if board not in (None, BOARD):
            raise UserError(f"board {board}: there is no such game")
        return open_agent(board)

    server = JsonServer(open_known, simulations=1, max_simulations=0, batch_size=2)
    for line in line_mutants(QUERIES, 150 * rounds):
        answers = ask(line, {"id": "end", "maxVisits": 0}, server=server)
        assert all(("error" in answer) != ("rootInfo" in answer) for answer in answers)
        assert sum(answer.get("id") == "end" for answer in answers) == 1
        assert len(answers) > 1 or not line.strip()


@pytest.mark.parametrize("line", ["[" * 200_000, '{"a":' * 200_000, '{"id": ' + "[" * 500 + "]" * 500 + "}"])
def test_a_deep_query_gets_a_short_answer(line: str):
    (answer,) = ask(line)
    assert answer == {"error": "invalid JSON: it is nested deeper than 100 levels, the limit of JSON"}


def test_a_query_longer_than_a_mebibyte_is_refused():
    query = '{"id": "1", "moves": [], "maxVisits": 0}'
    *refused, fitting = ask(query.ljust(2**20 + 1), query.ljust(3 * 2**20), query.ljust(2**20))
    assert refused == [{"error": "invalid JSON: it is larger than 1 MiB, the limit of JSON"}] * 2
    assert fitting["rootInfo"]["visits"] == 0


def test_the_command_uses_the_shipped_network(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO('{"id": "1", "moves": ["c3"], "maxVisits": 0}\n'))
    assert analyze.run(["hex", "--board", "hex:5"]) == 0
    (answer,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert answer["turnNumber"] == 1
    assert answer["rootInfo"]["currentPlayer"] == "W"
    assert answer["rootInfo"]["rawWinrate"] < 0.5  # the first stone in the center wins
    assert np.isclose(answer["rootInfo"]["winrate"], answer["rootInfo"]["rawWinrate"])


def test_the_command_passes_its_options_on(monkeypatch):
    passed = []

    def make(_, **options):
        passed.append(options)
        raise UserError("enough")

    monkeypatch.setattr(json_server, "JsonServer", make)
    assert analyze.run(["runs/1", "--batch", "3", "--simulations", "5", "--max_simulations", "50"]) == 2
    assert passed == [{"batch_size": 3, "simulations": 5, "max_simulations": 50}]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "no player and no --board given"),
        (["hex", "--workdir", "runs/1"], "--workdir runs/1: hex already names a player"),
        (["--board", "pgx:tic_tac_toe"], "board pgx:tic_tac_toe: no shipped network plays it"),
        (["--board", "tsp:10"], "board tsp:10: analysis is for two-player games without chance; use another board"),
        (["--board", "hex:5", "--simulations", "0"], "--simulations 0: it must be at least 1"),
        (["--board", "hex:5", "--batch", "0"], "--batch 0: it must be at least 1"),
        (["nothing", "--board", "hex:5"], "nothing holds no run"),
    ],
)
def test_mistakes_give_one_line(argv, message, capsys):
    assert analyze.run(argv) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
