"""The limits for clients and connections, with a small app in place of the API."""

import asyncio
import contextlib
import json
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from uvicorn.server import ServerState

from alphagat.serving import limits
from alphagat.serving.http_server import Protocol, client_key, make_server
from alphagat.serving.middleware import HEADERS
from tests.serving.http_clients import PATIENCE_S, answer_on, connect, is_open, running

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
WAIT, LARGE = GET.replace(b"/ ", b"/wait ", 1), GET.replace(b"/ ", b"/large ", 1)
BODY = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
several_addresses = pytest.mark.skipif(sys.platform == "darwin", reason="macOS has 127.0.0.1 only")
LARGE_SIZE = 30_000_000  # bytes, more than the socket buffers take


class App:
    """Answers `ok`. `/wait` waits for `gate` while its client does, and `/large` has a large answer in two parts."""

    def __init__(self):
        self.gate, self.waiting = asyncio.Event(), 0

    def open_gate(self):
        self.loop.call_soon_threadsafe(self.gate.set)

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            return await send({"type": "lifespan.shutdown.complete"})
        while (message := await receive()).get("more_body"):
            pass
        if message["type"] == "http.disconnect":
            return None
        if scope["path"] == "/wait":
            self.loop, self.waiting = asyncio.get_running_loop(), self.waiting + 1
            ends = asyncio.ensure_future(self.gate.wait()), asyncio.ensure_future(receive())
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.cancel()
            if not self.gate.is_set():
                return None
        parts = [b"x" * (LARGE_SIZE // 2)] * 2 if scope["path"] == "/large" else [b"ok"]
        headers = [(b"content-length", str(sum(map(len, parts))).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        return await send({"type": "http.response.body"})


@pytest.fixture
def service():
    return SimpleNamespace(failure=None)


@pytest.fixture
def app():
    return App()


@pytest.fixture
def address(app, service):
    with running(app, service) as (address, _):
        yield address


@pytest.fixture
def connected(address):
    """Returns a function that connects a client, with the arguments of `connect`."""
    with contextlib.ExitStack() as stack:
        yield lambda data=b"", **more: stack.enter_context(connect(address, data, **more))


def refused(client):
    """Returns the status and the error of an answer that ends the connection."""
    status, headers, body = answer_on(client)
    assert HEADERS.items() <= headers.items()
    assert headers["connection"] == "close"
    return status, json.loads(body)["error"]


@pytest.mark.parametrize("data", [b"", GET[:-2], GET[:3], BODY, BODY + b"12", GET + GET[:-2]])
def test_a_request_that_does_not_arrive_ends_its_connection(data, connected, monkeypatch):
    monkeypatch.setattr(limits, "TRANSFER_S", 0.1)
    client = connected(data)
    if data.startswith(GET):
        assert answer_on(client)[2] == b"ok"
    assert refused(client) == (408, "no complete request within 0.1 s")
    assert answer_on(connected(GET))[2] == b"ok"


@pytest.mark.parametrize("data", [GET[:-2] + b"X-Padding: ", BODY.replace(b" 9", b" 60000")])
def test_single_bytes_do_not_extend_the_time(data, connected, monkeypatch):
    monkeypatch.setattr(limits, "TRANSFER_S", 0.2)
    client = connected(data)
    for _ in range(100):
        with contextlib.suppress(ConnectionError):
            client.sendall(b"x")
        time.sleep(0.01)
    assert not is_open(client)


def test_an_answer_that_is_not_taken_ends_its_connection(connected, monkeypatch):
    monkeypatch.setattr(limits, "TRANSFER_S", 0.1)
    client = connected(LARGE)
    time.sleep(0.5)
    received = 0
    with contextlib.suppress(ConnectionError):
        while part := client.recv(1 << 20):
            received += len(part)
    assert received < LARGE_SIZE


def test_a_connection_serves_several_requests(connected):
    client = connected(GET)
    assert answer_on(client)[2] == b"ok"
    client.sendall(BODY + b"123456789")
    assert answer_on(client)[2] == b"ok"


@several_addresses
def test_a_client_above_its_limit_loses_its_oldest_connection(connected, monkeypatch):
    monkeypatch.setattr(limits, "MAX_CONNECTIONS_PER_CLIENT", 3)
    mine = connected()
    other = connected(source="127.0.0.2")
    slow = [connected(GET[:3]) for _ in range(2)]
    answered = connected(GET)
    assert answer_on(answered)[2] == b"ok"
    assert refused(mine) == (503, "there are too many connections; try again")
    assert all(map(is_open, (other, *slow, answered)))


@several_addresses
def test_above_the_limit_the_largest_client_loses_a_connection(connected, monkeypatch):
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 4)
    single = connected(source="127.0.0.2")
    slow = [connected(GET[:3], source="127.0.0.3") for _ in range(3)]
    assert answer_on(connected(GET, source="127.0.0.4"))[2] == b"ok"
    assert refused(slow[0])[0] == 503
    assert all(map(is_open, (single, *slow[1:])))


@several_addresses
def test_many_slow_connections_do_not_stop_new_ones(connected, monkeypatch):
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 20)
    for number in range(100):
        connected((b"", GET[:-2], BODY)[number % 3], source=f"127.0.1.{number}")
    for _ in range(10):
        assert answer_on(connected(GET))[2] == b"ok"


def test_connections_with_a_request_in_work_are_kept(connected, app, monkeypatch):
    monkeypatch.setattr(limits, "MAX_CONNECTIONS_PER_CLIENT", 3)
    working = [connected(WAIT) for _ in range(3)]
    while app.waiting < 3:
        time.sleep(0.001)
    assert refused(connected())[0] == 503
    app.open_gate()
    assert [answer_on(client)[2] for client in working] == [b"ok"] * 3


def test_an_answer_may_take_longer_than_a_transfer(connected, app, monkeypatch):
    monkeypatch.setattr(limits, "TRANSFER_S", 0.2)
    client = connected(WAIT)
    while not app.waiting:
        time.sleep(0.001)
    time.sleep(0.5)
    app.open_gate()
    assert answer_on(client)[2] == b"ok"


def test_an_answer_that_takes_too_long_is_504(connected, app, monkeypatch):
    monkeypatch.setattr(limits, "ANSWER_S", 0.1)
    monkeypatch.setattr(limits, "TRANSFER_S", 0.1)
    assert refused(connected(WAIT)) == (504, "no answer in time; try again")
    app.open_gate()


@pytest.mark.parametrize(
    "data",
    [
        *(b"\r\n\r\nx\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"),
        *(GET.replace(b"localhost", b"x\r\nHost: y"), BODY.replace(b" 9", b" -9")),
        b"GET /" + b"x" * limits.MAX_HEADERS,
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n",
    ],
)  # fmt: skip
def test_invalid_http_is_400(data, connected):
    assert refused(connected(data)) == (400, "Invalid HTTP request received")


def test_the_server_ends_with_the_evaluation_thread_and_waits_for_no_client(app, service, monkeypatch):
    monkeypatch.setattr(limits, "TRANSFER_S", 2 * PATIENCE_S)
    with running(app, service) as (address, thread), connect(address, BODY) as client:
        service.failure = "gone"
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        assert refused(client) == (503, "the server is shutting down")


def test_the_server_ends_although_an_answer_takes_long(app, service, monkeypatch):
    monkeypatch.setattr(limits, "ENDING_S", 0.1)
    monkeypatch.setattr(limits, "TRANSFER_S", 2 * PATIENCE_S)
    with running(app, service) as (address, thread), connect(address, WAIT) as client:
        while not app.waiting:
            time.sleep(0.001)
        service.failure = "gone"
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        assert refused(client) == (503, "the server is shutting down")


def test_an_ipv6_network_is_one_client():
    assert client_key(("2001:db8::1", 1)) == client_key(("2001:db8::2:3:4:5", 2)) != client_key(("2001:db8:0:1::1", 1))
    assert client_key(("10.0.0.1", 1)) == client_key(("10.0.0.1", 2)) != client_key(("10.0.0.2", 1))


def test_the_guide_lists_every_limit():
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "play.md").read_text()
    listed = dict(re.findall(r"^\| `([A-Z_]+)` \| ([\d,]+) ", guide, re.MULTILINE))
    assert listed == {
        name: f"{value:,.9g}" for name, value in vars(limits).items() if name.isupper() and name != "FLAGS"
    }
    flags = {f"--{name}": [f"{each.at_least:,g}", f"{each.at_most:,g}"] for name, each in limits.FLAGS.items()}
    rows = re.findall(r"^\| `(--\w+)` \| ([\d,]+) to ([\d,]+) ", guide, re.MULTILINE)
    assert {flag: limits_of_flag for flag, *limits_of_flag in rows} == flags


@pytest.fixture
def accept(app, service):
    """Returns a function that makes a connection without a network, from the given address."""
    config, state = make_server(app, service).config, ServerState()

    def make(host="10.0.0.1"):
        connection, transport = Protocol(config, state, {}, Mock()), Mock()
        transport.get_extra_info = {"peername": (host, 1)}.get
        transport.get_write_buffer_size.return_value = 0
        connection.connection_made(transport)
        return connection

    return make


def in_work(*, has_begun=False):
    """Returns the cycle of a request that is being answered."""
    return SimpleNamespace(more_body=False, response_started=has_begun, response_complete=False)


def test_a_client_that_takes_its_answer_again_is_not_waited_for(accept):
    connection = accept()
    connection.cycle = in_work(has_begun=True)
    found = []
    for change in (connection._watch, connection.pause_writing, connection.resume_writing):
        change()
        found.append(connection.loop.call_later.call_args.args[2])
    assert found == [504, 408, 504]


def test_an_answer_that_has_begun_is_cut_off(accept):
    connection = accept()
    connection.cycle = in_work(has_begun=True)
    connection._drop(504, "late")
    connection.transport.abort.assert_called_once()
    connection.transport.write.assert_not_called()


def test_an_answer_that_is_not_taken_is_cut_off(accept):
    connection = accept()
    connection.transport.get_write_buffer_size.return_value = 1
    connection._drop(408, "late")
    connection.transport.abort.assert_called_once()
    connection.transport.write.assert_not_called()


def test_a_connection_is_dropped_once(accept, monkeypatch):
    """Its client is still connected while the next ones arrive."""
    monkeypatch.setattr(limits, "MAX_CONNECTIONS_PER_CLIENT", 1)
    connections = [accept() for _ in range(4)]
    assert [each.transport.close.call_count for each in connections] == [1, 1, 1, 0]


def test_a_connection_that_was_answered_has_not_waited_long(connected, monkeypatch):
    monkeypatch.setattr(limits, "MAX_CONNECTIONS_PER_CLIENT", 3)
    first = connected(GET)
    slow = [connected(GET[:3]) for _ in range(2)]
    assert answer_on(first)[2] == b"ok"
    first.sendall(GET)
    assert answer_on(first)[2] == b"ok"
    connected()
    assert refused(slow[0])[0] == 503
    assert is_open(first)
