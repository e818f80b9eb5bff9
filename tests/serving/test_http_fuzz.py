"""Random requests, from nearly valid to noise: each gets a proper answer, and the server still works."""

import json
import random

import pytest

from alphagat.serving import limits
from alphagat.serving.app import make_app
from alphagat.serving.roster import Roster
from alphagat.serving.service import BatchService
from tests.serving.http_clients import answer_on, connect, running
from tests.serving.untrained import save_untrained

NUM_REQUESTS, SEEDS = 150, range(6)
METHODS = ["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "FOO", "get", "CONNECT"]
PATHS = [
    *("/", "/health", "/api/info", "/api/metrics", "/api/position", "/api/analysis", "/api/attention", "/api/record"),
    *("/api/boards/hex:3", "/api/boards/go:9", "/api/boards/%00", "/app.js", "/none", "//", "/api/info/", "*", "x://x/"),
    *("/%00", "/%2e%2e/%2e%2e/etc/passwd", "/%ff%fe", "/" + "a" * 300, "/" + "a/" * 2000, "/app.js/x", "/?" + "q" * 99),
]  # fmt: skip
WORDS = ["hex:3", "hex:4", "b2", "a1", "", "\0", "\ud800", "é" * 50, "../x", "x" * 41, "\n", "[", "null", "\u202e"]
NUMBERS = [0, 1, 4, 8, 9, -1, 1.5, 1e308, 2**31, 2**32, 10**30, float("nan"), float("inf")]
FIELDS = ["board", "moves", "seed", "simulations", "names", "other"]
HEADERS = [
    *("Content-Type: application/json", "Content-Type: text/plain", "Content-Type: \xff", "Content-Encoding: gzip"),
    *("Content-Length: 3", "Transfer-Encoding: chunked", "Transfer-Encoding: x", "Expect: 100-continue", "broken"),
    *("Upgrade: websocket\r\nConnection: upgrade", "Connection: close", "Range: bytes=5-1", "Range: x", "Accept: */*"),
    *("If-None-Match: *", "If-Modified-Since: \xff", "Cookie: \x01", "X: " + "y" * 999),
    *("Host: evil.example", "Origin: http://evil.example", "Origin: null"),
]  # fmt: skip
VALID = b'{"board": "hex:3", "moves": ["b2"], "simulations": 0}'


def random_value(random, depth=0):
    kind = random.randrange(8 if depth < 4 else 6)
    if kind < 5:
        return random.choice([random.choice(WORDS), random.choice(NUMBERS), None, True, []])
    if kind < 6:
        return "b2"
    if kind == 6:
        return [random_value(random, depth + 1) for _ in range(random.randrange(6))]
    return {random.choice(FIELDS): random_value(random, depth + 1) for _ in range(random.randrange(4))}


def random_body(random):
    """Returns a valid body with random changes of fields or bytes."""
    game = json.loads(VALID)
    for _ in range(random.randrange(4)):
        game[random.choice(FIELDS)] = random_value(random)
    body = bytearray(json.dumps(game if random.random() < 0.9 else random_value(random)).encode())
    for _ in range(random.choice([0, 0, 1, 20])):
        body[random.randrange(len(body))] = random.randrange(256)
    return bytes(body[: random.choice([None, None, None, 5])])


def random_request(random):
    """Returns a method and the bytes of a request that ends its connection."""
    method = random.choice(["POST", "POST", "GET", random.choice(METHODS)])
    path = random.choice(PATHS[4:8] if method == "POST" and random.random() < 0.8 else PATHS)
    body = random_body(random) if method not in ("GET", "HEAD") else b""
    headers = ["Host: localhost", HEADERS[0], f"Content-Length: {len(body)}", "Connection: close"]
    headers += random.sample(HEADERS, random.choice([0, 0, 1, 2]))
    request = "\r\n".join([f"{method} {path} HTTP/1.1", *headers]).encode("latin-1") + b"\r\n\r\n" + body
    if random.random() < 0.1:
        at = random.randrange(len(request))
        request = request[:at] + random.randbytes(5) + request[at:]
    return method, request


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    roster = Roster([save_untrained(tmp_path_factory.mktemp("fuzz"), "hex:3")])
    with (
        pytest.MonkeyPatch.context() as patch,
        BatchService(roster.prepare, max_batch=4, max_wait_ms=0, max_queue=8) as service,
        running(make_app(roster, service, 0), service) as (address, _),
    ):
        patch.setattr(limits, "TRANSFER_S", 0.2)  # for requests that lack bytes
        yield address


def check(status, headers, body, method):
    assert 200 <= status < 500
    if status >= 400 and method != "HEAD":
        assert headers["content-type"] == "application/json"
        answer = json.loads(body)
        assert list(answer) == ["error"]
        assert len(answer["error"]) < 600
        assert "\n" not in answer["error"]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_request_gets_a_proper_answer(address, seed):
    generator = random.Random(seed)
    for number in range(NUM_REQUESTS):
        method, request = random_request(generator)
        with connect(address, request) as client:
            try:
                check(*answer_on(client, method), method)
            except Exception as error:
                raise AssertionError(f"request {number}: {request!r}") from error
    with connect(
        address,
        b"POST /api/analysis HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(VALID) + VALID,
    ) as client:
        status, _, body = answer_on(client)
    assert (status, json.loads(body)["player"]) == (200, 1)
