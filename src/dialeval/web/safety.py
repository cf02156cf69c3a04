"""Protects the pages. Every request passes `Guard` first.

The pages show text written by strangers, on a machine whose browser visits other sites, too. So:

    Host          must be this machine's own name or an address: a foreign name that was made to
                  point here (DNS rebinding) gets nothing
    writes        must come from our own pages: Origin and Sec-Fetch-Site are compared, and every
                  form carries a token that is signed for the visitor's cookie
    token         asked for wherever one is set, which `Settings` demands beyond loopback. It comes
                  once in the address and lives on as a cookie that scripts cannot read
    size, pace    a body has a limit, and so has the number of requests of one client; how long a
                  request may take to arrive, and over how many connections: see below
    answers       never cached, never framed, never sniffed; the browser may load nothing but our
                  own files, and no script that stands in a page

A connection has a time limit, and a client a limit of connections. uvicorn waits for ever for the
end of a request, so a few hundred half-sent ones would take all the room there is. Here a
connection has a deadline for its headers, one for its body and one for taking our answer;
`ClientLimits` holds the seconds. They run from the start of each stage: a byte now and then does
not extend them.

Connections are counted for each client and in all. Where there are too many, the one that has kept
us waiting for longest makes room, and not the newcomer: someone who sends a whole request is served
even while others hold theirs back, from the same address or not. A request that has come whole is
never dropped.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import secrets
import socket
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import h11
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from dialeval.web.frame import Settings


@dataclass(frozen=True)
class ClientLimits:
    """The limits of one client: at most `burst` requests at once, then `per_second`."""

    body: int = 256 * 1024
    burst: int = 300
    per_second: float = 60.0
    clients: int = 4096
    """Clients that are remembered; the one that was quiet for longest is forgotten first."""
    connections: int = 64
    """The most connections of one client. A browser opens six."""
    connections_in_all: int = 200
    header_seconds: float = 10.0
    """The time from the connection, or the last answer, to the end of the headers."""
    body_seconds: float = 30.0
    answer_seconds: float = 60.0
    """The time to take an answer that is larger than the network's buffer."""


class TokenBuckets:
    """A bucket of requests per client that fills up with time."""

    def __init__(self, limits: ClientLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, client: str) -> bool:
        now = self._clock()
        left, last = self._buckets.pop(client, (float(self._limits.burst), now))
        left = min(self._limits.burst, left + (now - last) * self._limits.per_second)
        self._buckets[client] = (max(0.0, left - 1), now)
        if len(self._buckets) > self._limits.clients:
            self._buckets.popitem(last=False)
        return left >= 1


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def is_own_name(header: str, settings: Settings) -> bool:
    """Is this the Host of a request that was meant for us?

    An address written in digits is: to misuse it, a site would have to lie at that address. A name
    must be `localhost`, one that was given, or, beyond loopback, the name of this machine.
    """
    try:
        name = urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return False
    own = {"localhost", settings.host.lower(), *(name.lower() for name in settings.names)}
    if is_loopback(settings.host):
        return name in own or is_loopback(name)
    return name in own | {socket.gethostname().lower(), socket.getfqdn().lower()} or _is_address(
        name
    )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_from_own_page(headers: Headers) -> bool:
    """Browsers send Origin with every POST, and Sec-Fetch-Site besides; other programs may send
    neither, and still need the token of a form.

    Our pages send no referrer, and then a form's Origin is `null`. So is that of a hostile frame:
    only Sec-Fetch-Site, which no page can forge, tells them apart.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin == "null":
        return site == "same-origin"
    try:
        place = None if origin is None else urlsplit(origin).netloc
    except ValueError:  # `http://[`
        return False
    if place is not None and place.lower() != headers["host"].lower():
        return False
    return site in (None, "same-origin")


CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""Trusted types make `innerHTML` and its relatives an error: scripts can only set text."""

SECURITY_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

LOG = logging.getLogger("dialeval.web")

SAFE_METHODS = frozenset({"GET", "HEAD"})
MOST_DIGITS = 20
"""The most digits of a length; Python refuses to read numbers of thousands of digits."""
COOKIE_AGE = 30 * 24 * 3600


@dataclass(slots=True)
class Visitor:
    """The visitor: the random name in the cookie, and whether the cookie has to be set."""

    session: str
    is_new: bool
    is_wanted: bool = field(default=False)


class BodyTooLargeError(Exception):
    """More bytes came than `Limits.body` allows."""


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, settings: Settings, secret: bytes) -> None:
        self._app = app
        self._settings = settings
        self._secret = secret
        self._pace = TokenBuckets(settings.limits)
        self._running = 0
        """Requests that are being answered, those of clients that went away included."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        cookies = _cookies(headers)
        visitor = self._visitor(cookies)
        scope["dialeval.visitor"] = visitor

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._finish_headers(MutableHeaders(scope=message), scope["path"], visitor)
            await send(message)

        self._running += 1
        try:
            await self._answer(scope, receive, send_safely, headers, cookies)
        finally:
            self._running -= 1

    def _refusal(self, scope: Scope, headers: Headers, cookies: dict[str, str]) -> Response | None:
        """Returns why this request goes no further, as the answer to it; None if it may pass."""
        client = scope["client"][0] if scope.get("client") else ""
        if not self._pace.allows(client):
            return _refuse(429, "Too many requests. Wait a moment.", {"retry-after": "1"})
        if self._running > self._settings.limits.connections_in_all:
            return _refuse(503, "Too much to do. Wait a moment.", {"retry-after": "5"})
        if len(headers.getlist("host")) != 1 or not is_own_name(headers["host"], self._settings):
            return _refuse(
                421, "This page answers to its own address only: the one that dialeval printed."
            )
        if not (scope["query_string"].isascii() and scope.get("raw_path", b"").isascii()):
            return _refuse(400, "An address is ASCII: the rest is written with %.")
        if scope["method"] not in SAFE_METHODS and not is_from_own_page(headers):
            return _refuse(403, "This request came from another site.")
        if (size := headers.get("content-length")) and not size.isdecimal():
            return _refuse(400, "The length of the request makes no sense.")
        if size and (len(size) > MOST_DIGITS or int(size) > self._settings.limits.body):
            return _refuse(413, _too_large(self._settings.limits))
        return self._token_refusal(scope, cookies)

    def _token_refusal(self, scope: Scope, cookies: dict[str, str]) -> Response | None:
        path, token = scope["path"], self._settings.token
        if not token or any(path.startswith(prefix) for prefix in self._settings.open_prefixes):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for key, value in query if key == "token"]
        if given and scope["method"] in SAFE_METHODS and _equal(given[0], token):
            rest = urlencode([(key, value) for key, value in query if key != "token"])
            # A path that began with // would lead to another machine.
            place = "/" + scope["raw_path"].decode("latin-1").split("?")[0].lstrip("/")
            answer = RedirectResponse(f"{place}?{rest}" if rest else place, status_code=303)
            _set_cookie(answer, self._cookie_name("access"), self._access_proof())
            return answer
        if _equal(cookies.get(self._cookie_name("access"), ""), self._access_proof()):
            return None
        return _refuse(
            401, "This page needs its token: open the whole address that dialeval printed."
        )

    async def _answer(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: Headers,
        cookies: dict[str, str],
    ) -> None:
        limit, received, started = self._settings.limits.body, 0, False

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise BodyTooLargeError
            return message

        async def send_noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            answer = self._refusal(scope, headers, cookies) or self._app
            await answer(scope, receive_counted, send_noted)
        except BodyTooLargeError:
            refusal = _refuse(413, _too_large(self._settings.limits))
        except ClientDisconnect:  # nobody is left to be told
            return
        except Exception:
            # Said here and not by Starlette, whose own page for it would lie outside this guard.
            LOG.exception("%s %s failed", scope["method"], scope["path"])
            refusal = _refuse(500, "This is a bug in dialeval. The terminal of the page says more.")
        else:
            return
        if not started:
            await refusal(scope, receive, send)

    def _finish_headers(self, headers: MutableHeaders, path: str, visitor: Visitor) -> None:
        for name, value in SECURITY_HEADERS.items():
            headers[name] = value
        is_file = path.startswith("/static/")
        headers["cache-control"] = "no-cache" if is_file else "no-store"
        if visitor.is_wanted and visitor.is_new:
            cookie = Response()
            _set_cookie(cookie, self._cookie_name("visitor"), visitor.session)
            headers.append("set-cookie", cookie.headers["set-cookie"])

    def _visitor(self, cookies: dict[str, str]) -> Visitor:
        known = cookies.get(self._cookie_name("visitor"), "")
        if len(known) == 43 and known.isascii():
            return Visitor(known, is_new=False)
        return Visitor(secrets.token_urlsafe(32), is_new=True)

    def _cookie_name(self, what: str) -> str:
        """Ports of one machine share their cookies, so the name holds the port."""
        return f"dialeval-{what}-{self._settings.port}"

    def _access_proof(self) -> str:
        return sign(self._secret, f"access:{self._settings.token}")


def sign(secret: bytes, text: str) -> str:
    return hmac.new(secret, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _cookies(headers: Headers) -> dict[str, str]:
    try:
        parsed: SimpleCookie = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in parsed.items()}


def _set_cookie(answer: Response, name: str, value: str) -> None:
    answer.set_cookie(name, value, max_age=COOKIE_AGE, httponly=True, samesite="strict")


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(
        given.encode("utf-8", "surrogatepass"), expected.encode("utf-8", "surrogatepass")
    )


def _refuse(status: int, why: str, headers: dict[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{why}\n", status_code=status, headers=headers)


def _too_large(limits: ClientLimits) -> str:
    return f"The request is too large: at most {limits.body // 1024} kB."


TOO_SLOW = "The request did not come to its end in time.\n"


class Connection(H11Protocol):
    """One connection of a client; `limits` are those of the server."""

    limits: ClassVar[ClientLimits] = ClientLimits()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._stage: Any = None
        self._since = self.loop.time()
        self._deadline: asyncio.TimerHandle | None = None
        self._write_deadline: asyncio.TimerHandle | None = None
        self._note_stage()
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._deadline, self._write_deadline):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note_stage()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._note_stage()
        if self.transport.get_write_buffer_size():  # the rest of the answer, still to be taken
            self._await_reader()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_deadline is not None:
            self._write_deadline.cancel()
            self._write_deadline = None

    def send_400_response(self, msg: str) -> None:
        """Answers a request that is not HTTP with the same headers as any other."""
        self._answer(400, f"{msg}\n")

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def is_waiting(self) -> bool:
        """Has the client still to send something, whole headers or the rest of a body?"""
        return self._stage in (h11.IDLE, h11.SEND_BODY)

    @property
    def waiting_since(self) -> float:
        return self._since

    def _note_stage(self) -> None:
        """Starts the deadline of the stage that the client has come to, if it is another one."""
        stage = self.conn.their_state
        if stage is self._stage:
            return
        self._stage, self._since = stage, self.loop.time()
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None
        if self.is_waiting:
            limits = self.limits
            seconds = limits.header_seconds if stage is h11.IDLE else limits.body_seconds
            self._deadline = self.loop.call_later(seconds, self.give_up)

    def _await_reader(self) -> None:
        if self._write_deadline is None:
            seconds = self.limits.answer_seconds
            self._write_deadline = self.loop.call_later(seconds, self._stop_writing)

    def _stop_writing(self) -> None:
        self._write_deadline = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _make_room(self) -> None:
        """Where there are too many, drops one that waits: of this client, or of the client that has
        most of them, the one that has waited for longest."""
        everybody = [one for one in self.connections if isinstance(one, Connection)]
        own = [one for one in everybody if one.address == self.address]
        if len(own) > self.limits.connections:
            crowd = own
        elif len(everybody) > self.limits.connections_in_all:
            crowd = everybody
        else:
            return
        waiting = [one for one in crowd if one.is_waiting]
        counts = Counter(one.address for one in waiting)
        min(waiting, key=lambda one: (-counts[one.address], one.waiting_since)).give_up()

    def give_up(self) -> None:
        """Ends the connection; says why where an answer is owed and none has been begun."""
        if self.transport.is_closing():
            return
        has_begun = self.conn.trailing_data[0] or self.conn.their_state is h11.SEND_BODY
        if has_begun and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._answer(408, TOO_SLOW)
        if self.cycle is not None:  # whoever still works on an answer need not send it
            self.cycle.disconnected = True
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def _answer(self, status: int, text: str) -> None:
        headers = {
            **SECURITY_HEADERS,
            "cache-control": "no-store",
            "connection": "close",
            "content-length": str(len(text)),
            "content-type": "text/plain; charset=utf-8",
        }
        for event in (
            h11.Response(
                status_code=status, headers=list(headers.items()), reason=STATUS_PHRASES[status]
            ),
            h11.Data(data=text.encode("ascii")),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def connections_with(limits: ClientLimits) -> type[Connection]:
    """Returns what uvicorn makes of each connection."""
    return type("LimitedConnection", (Connection,), {"limits": limits})
