"""Who may speak to the server: this machine's own page, with the token of this start, in requests of bounded size."""

from __future__ import annotations

import hmac
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 64 * 1024  # bytes: a decision has a few hundred
LARGEST_QUERY = 4 * 1024
TOO_LARGE = f"A request must not be larger than {LARGEST_BODY:,} bytes."
STRANGER = "The token of this start is missing or wrong. Open the address that cellmend review printed."
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Wraps an application: what is not addressed to 127.0.0.1 by its own page with the token never reaches it.

    A page of another site that was made to resolve to 127.0.0.1 has its own name as Host; a form or script of another
    site has its own Origin; and neither knows the token. Files in `open_paths` hold nothing of the table.
    """

    def __init__(self, app: ASGIApp, *, token: str, port: int, open_paths: frozenset[str], no_access: bytes) -> None:
        """`no_access` is the page for people who open the address without the token."""
        self.app, self.token, self.open_paths, self.no_access = app, token.encode(), open_paths, no_access
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError("the review page speaks HTTP only")
        refused = self.refusal(scope)
        if refused is not None:
            await refused(scope, receive, _with_headers(send))
            return
        await self.app(scope, _limited(receive), _with_headers(send))

    def refusal(self, scope: Scope) -> Response | None:
        """What is answered instead, if the request is refused."""
        headers = Headers(raw=[(name.lower(), value) for name, value in scope["headers"]])
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return _said(403, "The page must be opened at the address that cellmend review printed.")
        if any(origin not in self.origins for origin in headers.getlist("origin")):
            return _said(403, "Another page must not speak to the review.")
        if any(site not in ("same-origin", "none") for site in headers.getlist("sec-fetch-site")):
            return _said(403, "Another site must not speak to the review.")
        if len(scope.get("query_string", b"")) > LARGEST_QUERY:
            return _said(414, f"A question must not be longer than {LARGEST_QUERY:,} bytes.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST_BODY:
            return _said(413, TOO_LARGE)
        if scope["path"] not in self.open_paths and not self._has_token(scope, headers):
            return (
                Response(self.no_access, 403, media_type="text/html") if scope["path"] == "/" else _said(403, STRANGER)
            )
        return None

    def _has_token(self, scope: Scope, headers: Headers) -> bool:
        """In a header, which no other site can send; for the page itself in its address."""
        given = headers.getlist("x-cellmend-token")
        if scope["path"] == "/" and scope["method"] in ("GET", "HEAD"):
            given = given or parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        return len(given) == 1 and hmac.compare_digest(given[0].encode(), self.token)


def _said(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status)


def _limited(receive: Receive) -> Receive:
    """What is received, until it is too much: a length that was announced may be a lie, or missing."""
    seen = 0

    async def receive_some() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > LARGEST_BODY:
            raise HTTPException(413, TOO_LARGE)
        return message

    return receive_some


def _with_headers(send: Send) -> Send:
    """What is sent, with the headers that keep a browser from running or loading anything else."""
    extra = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def send_more(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await send(message)

    return send_more
