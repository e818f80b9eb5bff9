"""The HTTP server: uvicorn, with time limits for clients and a limit on connections.

A connection waits either for its client, which has to send a request or to take an answer, or for this server. A client
gets `TRANSFER_S` seconds. Above the limits, a new connection replaces one of the client with the most connections: the
one on which the server has waited longest. Slow clients thus lose their connections, and others are served.
"""

import asyncio
import collections
import http
import ipaddress
import json
import time
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from alphagat.serving import limits
from alphagat.serving.middleware import HEADERS
from alphagat.serving.service import BatchService

ENDING = "the server is shutting down"


def make_server(app: Any, service: BatchService) -> uvicorn.Server:
    """Returns the server of `app`. It ends when the thread of `service` has failed."""

    async def check() -> None:
        server.should_exit |= service.failure is not None

    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            log_config=None,  # its handlers would keep the standard error of this moment
            log_level="error",
            access_log=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=limits.MAX_HEADERS,
            timeout_keep_alive=limits.KEEP_ALIVE_S,
            callback_notify=check,
            timeout_notify=1,
        )
    )
    return server


class Protocol(H11Protocol):
    """One connection.

    Attributes:
      client_key: identifies the client.
      since: when it began to wait for its client or for this server, in seconds of the monotonic clock.
      is_dropped: whether it was ended for a limit.
    """

    _timer: asyncio.TimerHandle | None = None
    is_dropped = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.client_key = client_key(self.client)
        self._waited_for_client = False
        self._watch()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        if not self.is_dropped:
            super().data_received(data)
            self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer:
            self._timer.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        if self.waits_for_client:
            self._drop(503, ENDING)
        else:
            super().shutdown()
            self.loop.call_later(limits.ENDING_S, self._drop, 503, ENDING)

    def send_400_response(self, msg: str) -> None:
        self._drop(400, msg.rstrip("."))

    @property
    def waits_for_client(self) -> bool:
        is_answering = self.cycle is not None and not self.cycle.more_body and not self.cycle.response_complete
        return not is_answering or self.flow.write_paused

    def _watch(self) -> None:
        """Starts a new time limit if the connection has changed from waiting for its client to this server, or back."""
        if self.waits_for_client == self._waited_for_client:
            return
        self._waited_for_client, self.since = self.waits_for_client, time.monotonic()
        if self._timer:
            self._timer.cancel()
        if self.waits_for_client:
            late = limits.TRANSFER_S, self._drop, 408, f"no complete request within {limits.TRANSFER_S:g} s"
        else:
            late = limits.ANSWER_S + limits.TRANSFER_S, self._drop, 504, "no answer in time; try again"
        self._timer = self.loop.call_later(*late)

    def _make_room(self) -> None:
        """Above a limit, drops a connection of the client with most connections: the one that has waited longest."""
        crowd = [each for each in self.connections if isinstance(each, Protocol) and not each.is_dropped]
        count = collections.Counter(each.client_key for each in crowd)
        if count[self.client_key] > limits.MAX_CONNECTIONS_PER_CLIENT:
            crowd = [each for each in crowd if each.client_key == self.client_key]
        elif len(crowd) <= limits.MAX_CONNECTIONS:
            return
        waiting = [each for each in crowd if each.waits_for_client]  # this connection is one of them
        chosen = max(waiting, key=lambda each: (count[each.client_key], -each.since))
        chosen._drop(503, "there are too many connections; try again")

    def _drop(self, status: int, message: str) -> None:
        """Ends the connection, with an answer unless another one has begun or is not taken."""
        self.is_dropped = True
        has_begun = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if has_begun or self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.write(_answer(status, message))
            self.transport.close()
            self.loop.call_later(limits.KEEP_ALIVE_S, self.transport.abort)  # for a client that does not take it


def client_key(client: tuple[str, int] | None) -> int | None:
    """Identifies a client by its IPv4 address, or by the first 64 bits of its IPv6 address, which one host owns."""
    if client is None:
        return None
    address = ipaddress.ip_address(client[0])
    return int(address) >> 64 if address.version == 6 else int(address)


def _answer(status: int, message: str) -> bytes:
    body = json.dumps({"error": message}).encode()
    headers = {"content-type": "application/json", "content-length": len(body), "connection": "close", **HEADERS}
    lines = [f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}", *(f"{name}: {headers[name]}" for name in headers)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
