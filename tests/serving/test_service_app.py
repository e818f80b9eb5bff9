"""Tests the HTTP API: answers and errors."""

import asyncio
import contextlib
import functools
import json
import re
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from starlette.testclient import TestClient

from alphagat.errors import UserError
from alphagat.evaluation.game_files import read_games
from alphagat.games import make_game
from alphagat.games.batches import batch_of_one
from alphagat.games.states import first_state
from alphagat.games.twenty_forty_eight import TwentyFortyEightGame
from alphagat.serving import app as app_module
from alphagat.serving import limits
from alphagat.serving.app import PAGE, make_app
from alphagat.serving.hosts import LOCAL
from alphagat.serving.limits import MAX_BODY, MAX_FILE
from alphagat.serving.messages import GameRequest, describe_attention, describe_line, describe_move, describe_position
from alphagat.serving.middleware import HEADERS, Middleware
from alphagat.serving.playthrough import Playthroughs
from alphagat.serving.preparation import Progress
from alphagat.serving.roster import Roster
from alphagat.serving.service import BatchService, Busy
from alphagat.serving.service_metrics import ServiceMetrics
from tests.serving.untrained import save_untrained

SIMULATIONS, ADDRESS = 4, "http://localhost:8000"


@pytest.fixture(scope="module")
def roster(tmp_path_factory):
    return Roster([save_untrained(tmp_path_factory.mktemp("app"), "hex:3")])


@pytest.fixture(scope="module")
def client(roster):
    service = BatchService(roster.prepare, max_batch=4, max_wait_ms=0, max_queue=8)
    with TestClient(make_app(roster, service, SIMULATIONS), base_url=ADDRESS) as client:
        yield client


class Silent:
    """A service that never answers."""

    def __init__(self):
        self.answers = []

    def submit(self, program, state):
        self.answers.append(Future())
        return self.answers[-1]

    def close(self):
        pass


def game(*moves, **more):
    return {"board": "hex:3", "moves": list(moves), **more}


def test_info_lists_boards_and_strengths(client):
    info = client.get("/api/info").json()
    assert (info["default"], info["strengths"], info["simulations"]) == ("hex:3", [0, 4, 16, 64, 256], SIMULATIONS)
    assert {"hex:3", "hex:11"} <= set(info["boards"])
    assert (info["max_moves"], info["max_file"]) == (limits.MAX_MOVES, MAX_FILE)
    board = client.get("/api/boards/hex:4").json()
    assert (board["family"], board["record"]) == ("hex", ".sgf")
    assert [network["attention"] for network in board["networks"]] == [{"blocks": [1], "heads": 2}]
    assert [player["name"] for player in board["players"]] == ["orange", "blue"]


def test_position_describes_the_game(client):
    position = client.post("/api/position", json=game("b2", 0)).json()
    assert [(step["name"], step["player"]) for step in position["moves"]] == [("b2", 0), ("a1", 1)]
    assert (position["player"], position["over"], position["winner"]) == (0, False, None)
    assert [move["action"] for move in position["legal"]] == [1, 2, 3, 5, 6, 7, 8]
    assert position["last"]["place"] == position["nodes"][0]
    assert position["svg"].startswith("<svg")
    over = client.post("/api/position", json=game("b1", "a1", "b2", "a2", "b3")).json()
    assert (over["over"], over["winner"], over["legal"]) == (True, 0, [])


def test_analysis_covers_the_legal_moves(client):
    for simulations in (0, SIMULATIONS):
        analysis = client.post("/api/analysis", json=game("b2", simulations=simulations)).json()
        assert [len(analysis[name]) for name in ("prior", "policy", "visits", "values")] == [8] * 4
        assert sum(analysis["policy"]) == pytest.approx(1, abs=1e-3)
        assert (analysis["player"], sum(analysis["visits"])) == (1, simulations)
        assert analysis["variation"][0]["action"] == analysis["action"] != 4
        assert [move["player"] for move in analysis["variation"][:2]] == [1, 0][: len(analysis["variation"])]
        assert all(value is None for value, visits in zip(analysis["values"], analysis["visits"]) if not visits)


def test_an_analysis_has_the_numbers_of_the_search(client, roster):
    program = roster.program("hex:3", "", SIMULATIONS)
    state = roster.session("hex:3").games.replay(0, ["b2"]).state
    expected = jax.tree.map(lambda leaf: np.asarray(leaf)[0], roster.prepare(program)(batch_of_one(state)))
    answer = client.post("/api/analysis", json=game("b2", simulations=SIMULATIONS)).json()
    legal = np.flatnonzero(state.legal_action_mask)
    near = functools.partial(pytest.approx, abs=1e-3, nan_ok=True)
    assert (answer["value"], answer["network_value"]) == near((expected.value, expected.network_value))
    assert answer["value"] != near(answer["network_value"])
    for name, values in (("prior", expected.prior), ("policy", expected.policy), ("values", expected.action_values)):
        assert [np.nan if each is None else each for each in answer[name]] == near(values[legal].tolist())
    assert answer["prior"] != near(answer["policy"])
    assert answer["visits"] == expected.visits[legal].tolist()


def test_a_move_of_a_piece_has_two_places():
    chess = make_game("chess")
    state = jax.device_get(first_state(chess))
    (action,) = (each for each in np.flatnonzero(state.legal_action_mask) if chess.action_name(state, each) == "e2e4")
    move = describe_move(chess, state, int(action))
    (x, y, *_), (to_x, to_y, *_) = move["from"], move["place"]
    assert (move["name"], move["player"], to_x) == ("e2e4", 0, x)
    assert to_y < y  # White plays upwards


def test_attention_sums_to_one_at_every_node(client):
    attention = client.post("/api/attention", json=game("b2")).json()
    weights = np.array(attention["weights"])  # [blocks, heads, E]
    for node in range(len(attention["kinds"])):
        np.testing.assert_allclose(weights[..., np.array(attention["receivers"]) == node].sum(-1), 1, atol=0.01)


def test_a_record_reads_back(client):
    names = ["Person", "AlphaGAT"]
    answer = client.post("/api/record", json=game("b1", "a1", "b2", "a2", "b3", names=names))
    (record,) = read_games(answer.text)
    assert (record.board, record.names, record.outcome) == ("hex:3", tuple(names), 1)
    assert record.moves == ("b1", "a1", "b2", "a2", "b3")
    resigned = client.post("/api/record", json=game("b1", "a1", outcome=-1, forfeit="resigned")).text
    (record,) = read_games(resigned)
    assert (record.outcome, record.forfeit) == (-1, "resigned")
    (record,) = read_games(client.post("/api/record", json=game("b1", "a1")).text)
    assert (record.outcome, record.forfeit) == (None, "")  # the game goes on
    moves = ["b1", "a1"]
    assert client.post("/api/games", content=answer.text + resigned).json() == {
        "games": [
            {"board": "hex:3", "moves": [*moves, "b2", "a2", "b3"], "names": names, "outcome": 1, "forfeit": ""},
            {"board": "hex:3", "moves": moves, "names": ["", ""], "outcome": -1, "forfeit": "resigned"},
        ]
    }


@pytest.mark.parametrize("num_players", [1, 2])
def test_games_with_chance_have_no_record(tmp_path, monkeypatch, num_players):
    roster = Roster([save_untrained(tmp_path, "2048:2")])
    monkeypatch.setattr(TwentyFortyEightGame, "num_players", num_players)
    with TestClient(make_app(roster, Silent(), SIMULATIONS), base_url=ADDRESS) as client:
        assert client.get("/api/boards/2048:2").json()["record"] is None
        answer = client.post("/api/record", json={"board": "2048:2", "moves": []})
    assert answer.status_code == 422
    assert answer.json() == {"error": "board 2048:2: game files hold only two-player games without chance"}


def test_a_network_is_chosen_by_name(client, roster):
    (player,) = roster.players("hex:3")
    answers = [client.post("/api/analysis", json=game(simulations=4, player=each)).json() for each in ("", player)]
    assert answers[0] == answers[1]
    for path in ("analysis", "attention"):
        body = game("b2", player="other", **({"simulations": 4} if path == "analysis" else {}))
        answer = client.post(f"/api/{path}", json=body)
        assert answer.status_code == 422
        assert answer.json()["error"].startswith("player other: it does not play hex:3 here; use one of")


def test_levels_are_prepared_ahead(client):
    for _ in range(600):
        preparation = client.get("/api/preparation/hex:3").json()
        if all(each["ready"] for each in preparation["strengths"]):
            break
        time.sleep(0.1)
    assert [each["simulations"] for each in preparation["strengths"]] == [0, 4, 16, 64, 256]
    assert all(each["ready"] and not each["failed"] for each in preparation["strengths"])
    assert preparation["estimate"] > 0
    assert client.get("/api/preparation/hex:3?player=other").status_code == 422
    assert client.get("/api/preparation/go:9").status_code == 422


def test_without_a_run_there_is_no_live_view(client):
    answer = client.get("/api/run")
    assert (answer.status_code, "alphagat watch RUN" in answer.json()["error"]) == (404, True)


def test_latencies_are_in_milliseconds():
    metrics = ServiceMetrics()
    metrics.add_batch([0.1] * 99 + [2.0])
    latency = metrics.summary()["latency_ms"]
    assert latency["p50"] == 100.0
    assert 100.0 < latency["p99"] < 2000.0


def test_all_programs_are_prepared_ahead_and_times_are_in_tenths_of_a_second(roster):
    asked = []
    service = SimpleNamespace(
        prepare_ahead=asked.extend,
        progress=lambda program: Progress(False, False, 3.14),
        estimate_s=lambda: 12.34,
        close=lambda: None,
    )
    with TestClient(make_app(roster, service, SIMULATIONS), base_url=ADDRESS) as client:
        assert client.get("/api/preparation/hex:3?ahead=false").json()["estimate"] == 12.3
        assert not asked
        answer = client.get("/api/preparation/hex:3").json()
    assert [each.num_simulations for each in asked] == [0, 4, 16, 64, 256, None]
    assert {each["elapsed"] for each in answer["strengths"]} == {3.1}
    assert answer["estimate"] == 12.3


def test_metrics_count_requests(client):
    before = client.get("/api/metrics").json()
    client.post("/api/analysis", json=game("b2", simulations=0))
    after = client.get("/api/metrics").json()
    assert (after["answered"] - before["answered"], after["queue_length"]) == (1, 0)
    assert after["latency_ms"]["p50"] <= after["latency_ms"]["p99"]


HOSTILE = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "nested": b"[" * 60_000,
    "no board": b'{"moves": []}',
    "unknown field": b'{"board": "hex:3", "simulation": 3}',
    "other family": b'{"board": "go:19"}',
    "a size not offered": b'{"board": "hex:19"}',
    "no size": b'{"board": "hex:99999999999999999999"}',
    "a path": b'{"board": "../../etc/passwd"}',
    "a long name": json.dumps({"board": "h" * 50_000}).encode(),
    "a null byte": b'{"board": "hex:3\\u0000"}',
    "moves no list": b'{"board": "hex:3", "moves": "b2"}',
    "an illegal move": b'{"board": "hex:3", "moves": [4, 4]}',
    "a move off the board": b'{"board": "hex:3", "moves": [9]}',
    "a negative move": b'{"board": "hex:3", "moves": [-1]}',
    "a huge number": b'{"board": "hex:3", "moves": [1' + b"0" * 4000 + b"]}",
    "a larger number": b'{"board": "hex:3", "moves": [1' + b"0" * 50_000 + b"]}",
    "a fraction": b'{"board": "hex:3", "moves": [1.5]}',
    "a truth": b'{"board": "hex:3", "moves": [true]}',
    "null": b'{"board": "hex:3", "moves": [null]}',
    "not a number": b'{"board": "hex:3", "seed": NaN}',
    "a negative seed": b'{"board": "hex:3", "seed": -1}',
    "too many moves": json.dumps({"board": "hex:3", "moves": [0] * 5000}).encode(),
    "moves after the end": json.dumps(game("b1", "a1", "b2", "a2", "b3", "a3")).encode(),
    "no UTF-8": b'{"board": "\xff\xfe"}',
}


@pytest.mark.parametrize("path", ["position", "analysis", "attention", "record"])
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_invalid_requests_get_one_short_line(client, path, body):
    answer = client.post(f"/api/{path}", content=body, headers={"content-type": "application/json"})
    assert 400 <= answer.status_code < 500
    assert len(answer.json()["error"]) < 600
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize("simulations", [5, -1, 10**6, "4", None, True])
def test_simulations_not_on_offer_are_rejected(client, simulations):
    answer = client.post("/api/analysis", json=game("b2", simulations=simulations))
    assert answer.status_code == 422
    assert "simulations" in answer.json()["error"]


def test_a_finished_game_has_no_analysis(client):
    answer = client.post("/api/analysis", json=game("b1", "a1", "b2", "a2", "b3", simulations=0))
    assert (answer.status_code, answer.json()["error"][:16]) == (422, "the game is over")


def test_a_long_name_of_a_move_is_refused_for_its_length(client):
    answer = client.post("/api/position", json=game("x" * 41))
    assert answer.json()["error"] == "moves.0.name: String should have at most 40 characters"


def test_a_body_that_is_not_json_is_named(client):
    answer = client.post("/api/position", content='{"board": hex}', headers={"content-type": "application/json"})
    error = "body: it is not JSON from character 11 on; send a JSON object"
    assert (answer.status_code, answer.json()["error"]) == (422, error)


@pytest.mark.parametrize("declared", [True, False])
def test_a_large_body_is_not_read(client, declared):
    body = b'{"board": "' + b"x" * MAX_BODY + b'"}'
    content = body if declared else iter([body[:1000], body[1000:]])
    answer = client.post("/api/position", content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, "larger" in answer.json()["error"]) == (413, True)
    assert HEADERS.items() <= dict(answer.headers).items()


def test_a_large_body_in_small_parts_is_not_read():
    read, sent = 0, []

    async def receive():
        nonlocal read
        read += 1000
        return {"type": "http.request", "body": b"x" * 1000, "more_body": read < 10 * MAX_BODY}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "path": "/api/position", "headers": [(b"host", b"localhost")]}
    asyncio.run(Middleware(Silent(), LOCAL)(scope, receive, send))
    assert sent[0]["status"] == 413
    assert MAX_BODY < read <= MAX_BODY + 1000


@pytest.mark.parametrize(
    "path", ["/api/none", "/../app.py", "/..%2fserving/app.py", "/%2e%2e/pyproject.toml", "/app.py"]
)
def test_no_other_files_are_served(client, path):
    assert client.get(path).status_code == 404
    assert client.get("/api/boards/go:9").status_code == 422
    assert client.get("/api/position").status_code in (404, 405)


@pytest.mark.parametrize("value", ["bytes=5-1", "x"])
def test_ranges_are_ignored(client, value):
    assert client.get("/app.js", headers={"range": value}).content == client.get("/app.js").content


@pytest.mark.parametrize("text", ["", "nonsense", "(;GM[1]", "(;GM[1]SZ[99999];B[aa])"])
def test_files_that_hold_no_game_get_one_line(client, text):
    answer = client.post("/api/games", content=text)
    assert answer.status_code == 422
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize("text", [b'[White "\xff"]\n\n1. e4 *\n', b"(;GN[hex:3]PB[\xff];B[a1])"])
def test_characters_that_cannot_be_read_are_replaced(client, text):
    assert client.post("/api/games", content=text).json()["games"][0]["names"][0] == "\ufffd"


def test_a_file_of_another_order_of_colours_is_refused(client):
    """The page alternates the colours, so it would show another game."""
    answer = client.post("/api/games", content="(;GN[hex:3];B[a1];B[b1];W[c1])")
    assert answer.status_code == 422
    assert re.match("move 2, b1, is by (orange|blue), but it is the turn of", answer.json()["error"])


def test_a_file_ends_where_the_game_ends(client):
    moves = ["a1", "a2", "b1", "b2", "c1", "c2"]  # with which White has connected its sides
    text = "".join(f";{'BW'[ply % 2]}[{move}]" for ply, move in enumerate([*moves, "a3", "b3"]))
    answer = client.post("/api/games", content=f"(;GN[hex:3]{text})")
    assert answer.json()["games"][0]["moves"] == moves
    assert client.post("/api/position", json={"board": "hex:3", "moves": moves}).json()["over"]


def test_the_requested_game_of_a_file_is_checked(client):
    moves = ["a1", "a2", "b1", "b2", "c1", "c2"]  # with which White has connected its sides
    over = "".join(f";{'BW'[ply % 2]}[{move}]" for ply, move in enumerate([*moves, "a3"]))
    text = f"(;GN[hex:3];B[a1];B[b1])(;GN[hex:3]{over})"
    answers = [client.post(f"/api/games?number={number}", content=text) for number in (0, 1, 2, -1)]
    assert answers[0].json()["error"].startswith("move 2, b1, is by")
    assert [each["moves"] for each in answers[1].json()["games"]] == [["a1", "b1"], moves]
    assert answers[2].json() == {"error": "number 2: the file has games 0 to 1"}
    assert answers[3].status_code == 422


def test_long_files_are_cut(client):
    text = "(;GN[hex:3];B[a1])" * 10_000
    assert MAX_BODY < len(text) < MAX_FILE
    answer = client.post("/api/games", content=text)
    assert len(answer.json()["games"]) == 100
    answer = client.post("/api/games", content=b" " * (MAX_FILE + 1))
    assert (answer.status_code, "larger" in answer.json()["error"]) == (413, True)


class Gate:
    """A function whose calls wait until the gate opens."""

    def __init__(self):
        self.num_begun, self.open = 0, threading.Event()

    def __call__(self, *_):
        self.num_begun += 1
        assert self.open.wait(30)
        raise UserError("the gate is open")


@contextlib.contextmanager
def waiting_at(gate, roster, num_requests, live_run=None):
    """Yields a client and threads for its requests; opens the gate in the end, so that a failed test does not wait."""
    service = BatchService(roster.prepare, max_batch=4, max_wait_ms=0, max_queue=8)
    app = make_app(roster, service, SIMULATIONS, live_run=live_run)
    with TestClient(app, base_url=ADDRESS) as client, ThreadPoolExecutor(num_requests) as pool:
        try:
            yield client, pool
        finally:
            gate.open.set()


def test_replays_leave_threads_to_other_requests(roster, monkeypatch):
    """More of them than the server has threads wait on one board, and further ones are refused."""
    gate = Gate()
    monkeypatch.setattr(app_module, "_replay", gate)
    monkeypatch.setattr(limits, "MAX_PIECES", 50)
    with waiting_at(gate, roster, 51) as (client, pool):
        answers = [pool.submit(client.post, "/api/position", json=game("b2")) for _ in range(51)]
        refused = next(as_completed(answers)).result()
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.json() == {"error": "50 requests for hex:3 already waiting; try again"}
        for path in ("/health", "/api/boards/hex:3", "/app.js"):
            assert client.get(path).status_code == 200
        assert gate.num_begun == 1
        gate.open.set()
        assert sorted(each.result().status_code for each in answers) == [422] * 50 + [503]
        assert gate.num_begun == 50


def test_health_and_metrics_need_no_thread(roster):
    gate, num_threads = Gate(), 40  # those of AnyIO
    with waiting_at(gate, roster, num_threads, SimpleNamespace(describe=gate)) as (client, pool):
        answers = [pool.submit(client.get, "/api/run") for _ in range(num_threads)]
        while gate.num_begun < num_threads:
            time.sleep(0.01)
        for path in ("/health", "/api/info", "/api/metrics"):
            assert client.get(path).status_code == 200
        assert not any(each.done() for each in answers)


def test_the_lanes_of_boards_leave_threads_to_other_requests(roster, monkeypatch):
    gate = Gate()
    monkeypatch.setattr(app_module, "_replay", gate)
    monkeypatch.setattr(limits, "MAX_WORKING", 2)
    with waiting_at(gate, roster, 3) as (client, pool):
        boards = ("hex:3", "hex:4", "hex:5")
        answers = [pool.submit(client.post, "/api/position", json={"board": board}) for board in boards]
        while gate.num_begun < 2:
            time.sleep(0.01)
        assert client.get("/health").status_code == 200
        assert gate.num_begun == 2
        gate.open.set()
        assert [each.result().status_code for each in answers] == [422] * 3


@pytest.mark.parametrize("path", ["/", "/app.js", "/watch.html", "/style.css", "/logo.svg", "/api/info", "/api/none"])
def test_all_responses_have_the_security_headers(client, path):
    assert HEADERS.items() <= dict(client.get(path).headers).items()


def test_the_page_loads_no_external_resources():
    for file in PAGE.iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"//\w", text), file  # an address; a comment has a space there
        assert "@import" not in text
        assert "<script>" not in text
        assert " style=" not in text


@pytest.mark.parametrize("path", ["/", "/health", "/api/info", "/api/boards/hex:3"])
def test_head_is_answered_where_get_is(client, path):
    assert client.head(path).status_code == client.get(path).status_code == 200


def test_a_full_queue_is_503(roster):
    class Full(Silent):
        def submit(self, program, state):
            raise Busy("8 requests already waiting")

    with TestClient(make_app(roster, Full(), 0), base_url=ADDRESS) as client:
        answer = client.post("/api/analysis", json=game("b2", simulations=0))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["error"] == "8 requests already waiting; try again"


def test_a_failed_evaluation_thread_is_503(roster):
    def prepare(program):
        raise SystemExit("gone")  # not an Exception, so it ends the thread

    service = BatchService(prepare, max_batch=4, max_wait_ms=0, max_queue=8)
    with TestClient(make_app(roster, service, 0), base_url=ADDRESS) as client:
        assert (client.get("/health").status_code, client.get("/health").json()) == (200, {"evaluation": "alive"})
        error = "the evaluation thread failed with SystemExit: gone; restart the server"
        for path, body in (("/api/analysis", game("b2", simulations=0)), ("/api/attention", game()), ("/health", None)):
            answer = client.post(path, json=body) if body else client.get(path)
            assert (answer.status_code, answer.json()) == (503, {"error": error})


def test_a_failed_evaluation_is_one_line_and_a_traceback(roster, capsys):
    def prepare(program):
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory\nwhile trying to allocate 3 bytes")

    service = BatchService(prepare, max_batch=4, max_wait_ms=0, max_queue=8)
    with TestClient(make_app(roster, service, 0), base_url=ADDRESS) as client:
        for path, body in (("/api/analysis", game("b2", simulations=0)), ("/api/attention", game())):
            answer = client.post(path, json=body)
            error = "the evaluation failed with RuntimeError: RESOURCE_EXHAUSTED: Out of memory; choose another level"
            assert (answer.status_code, answer.json()) == (500, {"error": error})
            assert HEADERS.items() <= dict(answer.headers).items()
            assert "in prepare" in capsys.readouterr().err


def test_a_timeout_is_504_and_cancels_the_request(roster, monkeypatch):
    monkeypatch.setattr(limits, "ANSWER_S", 0.05)
    service = Silent()
    with TestClient(make_app(roster, service, 0), base_url=ADDRESS) as client:
        answer = client.post("/api/analysis", json=game("b2", simulations=0))
    assert answer.status_code == 504
    assert service.answers[0].cancelled()


def test_a_disconnect_cancels_the_request(roster):
    service = Silent()
    app = make_app(roster, service, 0)
    body = json.dumps(game("b2", simulations=0)).encode()
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    headers = [
        (b"host", b"localhost"),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    scope = {
        "type": "http", "method": "POST", "path": "/api/analysis", "raw_path": b"/api/analysis", "query_string": b"",
        "headers": headers, "http_version": "1.1", "scheme": "http", "server": ("test", 80), "client": ("test", 1),
        "root_path": "", "asgi": {"version": "3.0"},
    }  # fmt: skip

    async def receive():
        if messages:
            return messages.pop()
        while not service.answers:
            await asyncio.sleep(0.001)
        return {"type": "http.disconnect"}

    async def send(message):
        pass

    asyncio.run(asyncio.wait_for(app(scope, receive, send), 30))
    assert service.answers[0].cancelled()


def described(board, *moves):
    """Returns the description of a position, without the app."""
    of = make_game(board)
    return describe_position(of, Playthroughs(of).replay(0, moves), None)


def test_a_move_of_a_piece_names_its_nodes():
    topology = make_game("breakthrough:5").topology
    move = described("breakthrough:5")["legal"][0]
    nodes = topology.action_senders[move["action"]], topology.action_receivers[move["action"]]
    assert (move["from"], move["to"]) == nodes
    assert move["from"] != move["to"]


def test_the_outcome_of_a_finished_game():
    draw = described("tic_tac_toe", "a1", "b1", "c1", "b2", "a2", "c2", "b3", "a3", "c3")
    assert (draw["over"], draw["winner"], draw["points"]) == (True, None, None)
    tour = described("tsp:10", *range(1, 10))
    assert (tour["over"], tour["winner"]) == (True, None)
    assert tour["points"] == pytest.approx(0.377, abs=1e-3)


def test_discs_are_counted():
    assert described("othello:4")["counts"] == (2, 2)


def test_a_line_goes_on_with_the_events_of_the_game():
    tour, request = make_game("tsp:10"), GameRequest(board="tsp:10", moves=[1], seed=5)
    games = Playthroughs(tour)
    (move,) = describe_line(games, tour, request, np.array([2, -1]))
    assert move == describe_move(tour, games.replay(5, [1]).state, 2)
    assert move != describe_move(tour, games.replay(0, [1]).state, 2)


def test_attention_names_the_kinds_of_nodes():
    of = make_game("connect_four")
    kinds = describe_attention(of, np.zeros((1, 1, len(of.topology.senders))))["kinds"]
    assert [kinds.count(kind) for kind in ("cell", "column")] == [42, 7]


def test_seeds_have_32_bits(client):
    answers = [client.post("/api/position", json=game("b2", seed=seed)) for seed in (2**32 - 1, 2**32)]
    assert [answer.status_code for answer in answers] == [200, 422]


def test_a_file_that_names_no_board_is_of_the_given_one(client):
    answer = client.post("/api/games?board=hex:4", content="(;B[a1];W[b2])")
    (found,) = answer.json()["games"]
    assert (found["board"], found["moves"]) == ("hex:4", ["a1", "b2"])


def test_a_board_states_its_goal(client):
    assert client.get("/api/boards/hex:3").json()["goal"] == make_game("hex:3").goal
