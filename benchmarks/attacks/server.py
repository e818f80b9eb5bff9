"""Attacks on the web server."""

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from commands import ROOT, Answer, Attack, with_words


def served(question: bytes, crowd: int = 0) -> Answer:
    """Serves, opens `crowd` connections that stay silent, and returns the HTTP status and body of the answer."""
    command = [sys.executable, "-m", "alphagat", "play", "--port", "0", "--board", "hex:3", "--simulations", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server, ExitStack() as clients:
        clients.callback(server.terminate)
        assert server.stdout is not None
        address = "127.0.0.1", int(server.stdout.readline().split()[3].rpartition(":")[2])
        for _ in range(crowd):
            clients.enter_context(socket.create_connection(address))
        client = clients.enter_context(socket.create_connection(address, 40))
        client.sendall(question)
        try:
            head, _, body = client.makefile("rb").read().decode().partition("\r\n\r\n")
        except OSError as error:
            return Answer(None, str(error))
    return Answer(int(head.split()[1]), body)


def headers_without_an_end(folder: Path) -> Answer:
    return served(b"GET / HTTP/1.1\r\nHost: localhost\r\n")


def body_without_an_end(folder: Path) -> Answer:
    return served(b"POST /api/position HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")


def many_connections(folder: Path) -> Answer:
    return served(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", crowd=900)


def other_host(folder: Path) -> Answer:
    return served(b"GET /api/info HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")


def other_origin(folder: Path) -> Answer:
    headers = b"Host: localhost\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n"
    return served(b"GET /api/info HTTP/1.1\r\n" + headers)


SERVER: dict[str, Attack] = {
    "13 server: an endless wait": with_words("alphagat", "play", "--port", "0", "--max_wait_ms", "inf"),
    "14 server: an empty host": with_words("alphagat", "play", "--port", "0", "--host", ""),
    "14 server: headers without an end": headers_without_an_end,
    "14 server: a body without an end": body_without_an_end,
    "14 server: 900 silent connections": many_connections,
    "15 server: another host": other_host,
    "15 server: another origin": other_origin,
}
