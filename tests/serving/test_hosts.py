"""The Host and Origin headers that the server accepts."""

import pytest
from starlette.testclient import TestClient

from alphagat.serving.app import make_app
from alphagat.serving.hosts import LOCAL, AllowedHosts
from alphagat.serving.middleware import HEADERS

OPEN = AllowedHosts(frozenset({"play.example.org"}), any_address=True)
LOOPBACK = ["localhost", "localhost:8000", "LocalHost:1", "localhost.", "127.0.0.1:8000", "127.9.9.9", "[::1]:8000"]
ELSEWHERE = ["192.168.1.5:8000", "[2001:db8::1]:8000", "play.example.org", "Play.Example.Org:8000"]
REFUSED = [
    *("evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.nip.io", "evil@localhost"),
    *("localhost@evil", "", "localhost:", "localhost:x", "localhost:999999", "[localhost]", "::1", "[::1"),
    *("localhost/", "local host", "127.1", "0x7f000001", "2130706433", "127.0.0.1,evil.example", "é", "localhost\x00"),
]  # fmt: skip


@pytest.mark.parametrize("host", LOOPBACK)
def test_loopback_is_always_accepted(host):
    assert LOCAL.refusal([host], []) is None
    assert OPEN.refusal([host], [f"http://{host}"]) is None


@pytest.mark.parametrize("host", ELSEWHERE)
def test_names_and_addresses_of_the_network_are_accepted_when_allowed(host):
    assert OPEN.refusal([host], [f"https://{host}"]) is None
    assert LOCAL.refusal([host], []) is not None


@pytest.mark.parametrize("host", REFUSED)
def test_other_hosts_are_refused_in_one_line(host):
    for hosts in (LOCAL, OPEN):
        refusal = hosts.refusal([host], [])
        assert refusal is not None
        assert "\n" not in refusal


def test_exactly_one_host_is_needed():
    assert LOCAL.refusal([], []) is not None
    assert LOCAL.refusal(["localhost", "localhost"], []) is not None


@pytest.mark.parametrize(
    "origin",
    ["null", "", "http://evil.example", "http://localhost", "http://localhost:9000", "http://localhost:8000.evil.example"],
)  # fmt: skip
def test_pages_of_other_origins_are_refused(origin):
    for origins in ([origin], ["http://localhost:8000", origin]):
        assert "only pages of this server" in LOCAL.refusal(["localhost:8000"], origins)


def test_the_server_checks_every_path():
    class Untouched:
        def __getattr__(self, name):
            raise AssertionError(f"a refused request reached {name}")

    client = TestClient(make_app(Untouched(), Untouched(), 0), base_url="http://localhost:8000")
    for path in ("/", "/health", "/api/info", "/api/metrics", "/app.js", "/none"):
        for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}):
            answer = client.get(path, headers=headers)
            assert (answer.status_code, list(answer.json())) == (403, ["error"])
            assert HEADERS.items() <= dict(answer.headers).items()
    assert client.post("/api/position", content=b"{", headers={"host": "evil.example"}).status_code == 403
    assert client.get("/app.js").status_code == 200


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]
)
def test_pages_of_other_sites_cannot_make_the_server_work(site, status):
    class Idle:
        def metrics(self):
            return {}

    client = TestClient(make_app(Idle(), Idle(), 0), base_url="http://localhost:8000")
    assert client.get("/api/metrics", headers={"sec-fetch-site": site}).status_code == status
    assert client.get("/", headers={"sec-fetch-site": site}).status_code == 200  # a link to the page
