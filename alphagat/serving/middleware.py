"""ASGI middleware: a limit on request bodies, and security headers on responses."""

from typing import Any

MAX_BODY = 64 * 1024  # bytes
HEADERS = {
    # The page loads resources from this server only.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


class Middleware:
    """Rejects requests with more than `MAX_BODY` bytes, and adds `HEADERS` to each response."""

    def __init__(self, app: Any):
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    *((name.encode(), value.encode()) for name, value in HEADERS.items()),
                ]
            await send(message)

        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body, more = body + message.get("body", b""), message.get("more_body", False)
            if len(body) > MAX_BODY:
                return await _refuse(send_with_headers)
        whole = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_whole() -> Any:
            return whole.pop() if whole else await receive()

        return await self._app(scope, receive_whole, send_with_headers)


async def _refuse(send: Any) -> None:
    text = f'{{"error":"the request is larger than {MAX_BODY} bytes; send less"}}'.encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": text})
