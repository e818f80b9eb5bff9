"""The play command: flags, one-line errors, and shutdown."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import urllib.request
from types import SimpleNamespace
from typing import cast

import pytest

from alphagat.cli import play
from alphagat.errors import UserError
from alphagat.serving import app, server
from alphagat.serving.hosts import AllowedHosts
from alphagat.serving.roster import Roster
from tests.cli.terminals import be_terminal
from tests.serving.untrained import save_untrained


def test_serves_until_interrupted(tmp_path):
    command = [sys.executable, "-m", "alphagat", "play", "--workdir", save_untrained(tmp_path, "hex:2"), "--port", "0"]
    with subprocess.Popen(
        [*command, "--simulations", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        try:
            line = run.stdout.readline()
            address = line.split()[1]
            assert line == f"Open {address} in a browser to play (Ctrl-C to stop)\n"
            assert address.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(f"{address}/api/info", timeout=60) as answer:
                assert json.load(answer)["default"] == "hex:2"
            with urllib.request.urlopen(address, timeout=60) as answer:
                assert b"<title>AlphaGAT</title>" in answer.read()
            run.send_signal(signal.SIGINT)
            assert run.communicate(timeout=60) == ("", "stopped\n")
            assert run.returncode == 130
        finally:
            run.kill()


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--port", "70000"], "--port 70000: it must be at least 0 and at most 65535"),
        (["--simulations", "-1"], "--simulations -1: it must be at least 0 and at most 4096"),
        (["--workdir", "nowhere"], "nowhere"),
        (["hex", "--workdir", "nowhere"], "--workdir nowhere: hex is already named; name all of them by RUN"),
        (
            ["--board", "pgx:tic_tac_toe"],
            "board pgx:tic_tac_toe: no shipped network plays it, only boards like ",
        ),
        (["--board", "hex:x"], "board hex:x: it must be hex:SIZE"),
        (["--board", ""], "argument --board: it is empty; give it a value"),
        (["--workdir", "x" * 300], "File name too long; use another path"),
        (["--max_batch", "0"], "--max_batch 0: it must be at least 1 and at most 4096"),
        (["--max_wait_ms", "inf"], "--max_wait_ms inf: it must be a finite number, at least 0 and at most 10000"),
        (["--workdir", ""], "argument --workdir: it is empty; give it a value"),
        (["--host", ""], "argument --host: it is empty; give it a value"),
        (["--host", " "], "--host ' ': it must be an address; 0.0.0.0 means all interfaces"),
        (["--host", "é" * 70], "it is not a host name; use one such as 127.0.0.1"),
        (["--host", "192.0.2.1"], "; use an address of this machine, such as 127.0.0.1"),
        (["--allowed_hosts=a.org", "--allowed_hosts=http://b.org"], "--allowed_hosts http://b.org: it must be a host"),
        (["--allowed_hosts", "."], "--allowed_hosts .: it must be a host name such as play.example.org"),
        (["--allowed_hosts", "a.org", "nowhere"], "nowhere holds no run"),
        (["--sims=3"], "--sims is not a flag of this command; "),
    ],
)
def test_errors_give_one_line(flags, error, capsys):
    assert play.run([*flags, "--port", "0"] if "--port" not in flags else flags) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert error in line


def test_a_port_in_use_is_reported(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert play.run(["--port", str(port)]) == 2
    assert (
        capsys.readouterr().err
        == f"error: --host 127.0.0.1 --port {port}: Address already in use; use another port, or --port 0\n"
    )


def test_a_failed_evaluation_thread_ends_the_server_with_one_line(tmp_path, monkeypatch, capsys):
    def prepare(roster, program):
        raise SystemExit("gone")  # not an Exception, so it ends the thread

    monkeypatch.setattr(Roster, "prepare", prepare)
    assert play.run(["--workdir", save_untrained(tmp_path, "hex:2"), "--port", "0"]) == 1
    error = "error: the evaluation thread failed with SystemExit: gone; restart the server\n"
    assert capsys.readouterr().err == error


def test_the_bound_address_decides_which_hosts_are_allowed(tmp_path, monkeypatch):
    asked = []

    def make_app(roster, service, simulations, hosts, live_run):
        asked.append(hosts)
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "make_app", make_app)
    workdir = save_untrained(tmp_path, "hex:2")
    assert play.run(["--workdir", workdir, "--port", "0"]) == 130
    names = ["--allowed_hosts", "A.org.", "--allowed_hosts", "b"]
    assert play.run(["--workdir", workdir, "--port", "0", "--host", "0.0.0.0", *names]) == 130
    assert asked == [AllowedHosts(), AllowedHosts(frozenset({"a.org", "b"}), any_address=True)]


def test_on_a_terminal_it_says_what_it_waits_for_and_an_error_is_still_one_line(tmp_path, monkeypatch):
    def make_app(*_):
        raise UserError("no app")

    monkeypatch.setattr(app, "make_app", make_app)
    terminal = be_terminal(monkeypatch)
    assert play.run(["--workdir", save_untrained(tmp_path, "hex:2"), "--port", "0"]) == 2
    assert terminal.texts() == ({"starting JAX", "loading the networks"}, ["error: no app"])


def test_help_lists_every_flag(capsys):
    assert play.run(["--help"]) == 0
    text = capsys.readouterr().out
    for flag in (
        "workdir",
        "board",
        "host",
        "port",
        "simulations",
        "max_batch",
        "max_wait_ms",
        "max_queue",
        "allowed_hosts",
    ):
        assert f"--{flag} " in text


@pytest.mark.parametrize(
    ("host", "address", "is_any"),
    [
        ("127.0.0.1", "http://127.0.0.1:80", False),
        ("0.0.0.0", "http://127.0.0.1:80", True),
        ("::", "http://[::1]:80", True),
        ("::2", "http://[::2]:80", False),
    ],
)
def test_the_address_that_is_printed_can_be_opened(tmp_path, monkeypatch, capsys, host, address, is_any):
    options = play.make_parser().parse_args([])
    options.sources = [save_untrained(tmp_path, "hex:2")]
    service = SimpleNamespace(prepare_ahead=lambda programs: None, check=lambda: None)
    monkeypatch.setattr(server, "BatchService", lambda *_, **__: contextlib.nullcontext(service))
    monkeypatch.setattr(server.http_server, "make_server", lambda *_: SimpleNamespace(run=lambda sockets: None))
    listener = cast(socket.socket, SimpleNamespace(getsockname=lambda: (host, 80)))
    with pytest.raises(KeyboardInterrupt):
        server.run_server(options, listener)
    lines = [f"Open {address} in a browser to play (Ctrl-C to stop)"]
    lines += ["It listens on all addresses of this machine, on port 80"] * is_any
    assert capsys.readouterr().out.splitlines() == lines
