"""Who gets in: one browser on this machine, which opened the printed address, and its own pages only.

- The Host header must name this server, so that no other name that leads to this machine reaches it.
- The address holds a token that works once. It becomes a cookie that scripts cannot read and other sites cannot send.
- A change needs a sign that only our own pages hold, and must not come from another site.
- Every answer forbids the browser to load, send or run anything that this server did not make.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = "token"  # noqa: S105  (the name of a parameter)
SIGN = "sign"
SIGN_HEADER = "x-sfumato-sign"
CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
# A page of report/ has its styles inside, and nothing else. It is shown apart from everything of this server.
POLICY_OF_PAGES = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), usb=()",
    "cache-control": "no-store",
}


class Access:
    """The secrets of one server."""

    def __init__(self, hosts: Iterable[str], port: int) -> None:
        self.hosts = frozenset(f"{host}:{port}" for host in hosts)
        self.origins = frozenset(f"http://{host}" for host in self.hosts)
        self.cookie = f"sfumato-{port}"  # browsers share cookies between the ports of a machine
        self.token: str | None = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)

    @property
    def sign(self) -> str:
        """What a form of our own pages holds."""
        return hmac.digest(self._session.encode(), b"sign of a form", "sha256").hex()

    def is_sign(self, text: str | None) -> bool:
        return text is not None and hmac.compare_digest(text.encode(), self.sign.encode())

    def knows(self, headers: Headers) -> bool:
        """Return whether the request has the cookie."""
        cookie: SimpleCookie = SimpleCookie()
        try:
            cookie.load(headers.get("cookie", ""))
        except CookieError:
            return False
        found = cookie.get(self.cookie)
        return found is not None and hmac.compare_digest(found.value.encode(), self._session.encode())

    def admit(self, token: str) -> Response | None:
        """Exchange the token for the cookie. It works once."""
        if self.token is None or not hmac.compare_digest(token.encode(), self.token.encode()):
            return None
        self.token = None
        answer = RedirectResponse("/", 303)
        answer.set_cookie(self.cookie, self._session, httponly=True, samesite="strict", path="/")
        return answer

    def is_foreign(self, headers: Headers) -> bool:
        """Return whether a change comes from the page of another site."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        return (origin is not None and origin not in self.origins) or site not in (None, "same-origin")


class Gate:
    """Refuses everything that is not from our own page, before anything else sees it."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there are no web sockets here

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._refusal(scope)
        await (self._app if answer is None else answer)(scope, receive, send_safely)

    def _refusal(self, scope: Scope) -> Response | None:
        access, headers = self._access, Headers(scope=scope)
        if headers.getlist("host") not in [[host] for host in access.hosts]:
            return PlainTextResponse("The Host header names another server.\n", 400)
        if scope["method"] in CHANGING and access.is_foreign(headers):
            return PlainTextResponse("Changes from other sites are refused.\n", 403)
        if access.knows(headers):
            if scope["path"] == "/" and scope["query_string"].startswith(f"{TOKEN}=".encode()):
                return RedirectResponse("/", 303)  # the address is opened once more in the same browser
            return None
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get(TOKEN, [])
        if scope["method"] == "GET" and scope["path"] == "/" and len(tokens) == 1:
            admitted = access.admit(tokens[0])
            if admitted is not None:
                return admitted
        return PlainTextResponse(
            "This page belongs to whoever started 'sfumato app'. Open the address that it printed; the address works "
            "once. Start it again for a new one.\n",
            403,
        )
