"""Raw HTTP over sockets: a server on its own thread, and clients that may misbehave."""

import contextlib
import http.client
import socket
import threading
import time

from alphagat.serving.hosts import listen
from alphagat.serving.http_server import make_server

PATIENCE_S = 30  # reached only by failing tests


@contextlib.contextmanager
def running(app, service):
    """Serves `app` on a free port, and yields the address and the thread of the server."""
    with listen("127.0.0.1", 0) as listener:
        server = make_server(app, service)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.001)
            yield listener.getsockname(), thread
        finally:
            server.should_exit = True
            thread.join(PATIENCE_S)


def connect(address, data=b"", *, source="127.0.0.1"):
    """Opens a connection from `source` and sends `data`."""
    client = socket.create_connection(address, PATIENCE_S, source_address=(source, 0))
    client.sendall(data)
    return client


def answer_on(client, method="GET"):
    """Reads the next answer: its status, headers and body."""
    answer = http.client.HTTPResponse(client, method=method)
    answer.begin()
    return answer.status, dict(answer.getheaders()), answer.read()


def is_open(client):
    """Returns whether the server has neither answered nor closed the connection."""
    client.settimeout(0.05)
    try:
        client.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    except ConnectionError:
        return False
    finally:
        client.settimeout(PATIENCE_S)
    return False
