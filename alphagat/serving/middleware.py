"""ASGI middleware: allowed hosts, a limit on request bodies, and security headers on responses."""

from typing import Any

from starlette.responses import JSONResponse

from alphagat.serving.hosts import AllowedHosts
from alphagat.serving.limits import MAX_BODY, MAX_FILE

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
FILES = "/api/games"  # takes files, which are larger than other bodies


class Middleware:
    """Rejects requests of other hosts or sites or with too large a body, and adds `HEADERS` to each response."""

    def __init__(self, app: Any, hosts: AllowedHosts):
        self._app, self._hosts = app, hosts

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

        refusal = self._hosts.refusal(_values(scope, b"host"), _values(scope, b"origin")) or _refusal_of_site(scope)
        if refusal is not None:
            return await _refuse(403, refusal)(scope, receive, send_with_headers)
        most = MAX_FILE if scope["path"] == FILES else MAX_BODY
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > most:
                too_large = f"the request is larger than {most} bytes; send less"
                return await _refuse(413, too_large)(scope, receive, send_with_headers)
        whole = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def receive_whole() -> Any:
            return whole.pop() if whole else await receive()

        # Ranges are optional in HTTP, all files are small, and Starlette refuses an invalid range in plain text.
        headers = [(name, value) for name, value in scope["headers"] if name != b"range"]
        return await self._app({**scope, "headers": headers}, receive_whole, send_with_headers)


def _refusal_of_site(scope: Any) -> str | None:
    """Returns why a request that a browser sends for a page of another site is refused; None if it is not.

    An image, say, is requested without `Origin`, and could make the server compile. Links to the page are accepted.
    """
    if scope["path"].startswith("/api/") and {"cross-site", "same-site"} & {*_values(scope, b"sec-fetch-site")}:
        return "only pages of this server may send requests to /api"
    return None


def _values(scope: Any, header: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == header]


def _refuse(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status, {"connection": "close"})
