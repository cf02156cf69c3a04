"""Clients that keep the server waiting: half-sent requests, bodies that never end, no reading."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack
from urllib.parse import urlsplit

from browser import serving
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from dialeval.web.frame import Settings, create_app
from dialeval.web.safety import ClientLimits, Connection

from .asking import ask

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
HALF_BODY = (
    b"POST /read HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\na=b"
)
HEADERS_TOO = b"content-security-policy: default-src 'none'"


async def read(request):
    return PlainTextResponse(str(len(await request.form())))


async def large(request):
    return PlainTextResponse("x" * 20_000_000)


ROUTES = [Route("/read", read, methods=["POST"]), Route("/large", large)]


def started(address: str, begun: bytes, room: ExitStack) -> socket.socket:
    place = urlsplit(address)
    raw = room.enter_context(socket.create_connection((place.hostname, place.port), timeout=20))
    raw.sendall(begun)
    return raw


def said(raw: socket.socket) -> bytes:
    """All that comes until the server hangs up; fails where it does not."""
    pieces = []
    while piece := raw.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)


def test_210_half_sent_requests_lock_nobody_out():
    """From the same address, and long before any time-out."""
    limits = ClientLimits(header_seconds=600, body_seconds=600)
    with serving(create_app(Settings(limits=limits), ROUTES)) as address, ExitStack() as room:
        first = started(address, HALF, room)
        # Its bytes are read before it is sent away: TCP drops the answer to bytes that nobody read.
        assert ask(address).status == 200
        rest = [started(address, (HALF_BODY, HALF)[n % 2], room) for n in range(209)]
        assert [ask(address).status for _ in range(3)] == [200] * 3
        assert said(first).startswith(b"HTTP/1.1 408 ")
        # The newest were not sent away: what they began can still be finished.
        rest[-2].sendall(b"Connection: close\r\n\r\n")
        assert said(rest[-2]).startswith(b"HTTP/1.1 200 ")


def test_headers_and_bodies_that_do_not_come_end_in_time(caplog):
    limits = ClientLimits(header_seconds=0.3, body_seconds=0.2)
    with serving(create_app(Settings(limits=limits), ROUTES)) as address, ExitStack() as room:
        half, half_body = (started(address, begun, room) for begun in (HALF, HALF_BODY))
        silent = started(address, b"", room)
        for raw in (half, half_body):
            answer = said(raw)
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert HEADERS_TOO in answer
        assert said(silent) == b""
        assert ask(address).status == 200
    assert caplog.text == ""


def test_a_byte_now_and_then_does_not_extend_the_time():
    limits = ClientLimits(header_seconds=0.5)
    with serving(create_app(Settings(limits=limits))) as address, ExitStack() as room:
        raw = started(address, HALF + b"X-Drip: ", room)
        stop = threading.Event()

        def drip():
            while not stop.wait(0.05):
                try:
                    raw.sendall(b"x")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            first = raw.recv(12)
        except ConnectionResetError:
            first = b"HTTP/1.1 408"
        finally:
            stop.set()
            dripping.join()
        assert first == b"HTTP/1.1 408"


def test_an_answer_that_nobody_takes_is_given_up():
    limits = ClientLimits(answer_seconds=0.2)
    gone = threading.Event()

    class Watched(Connection):
        def connection_lost(self, exc):
            super().connection_lost(exc)
            gone.set()

    Watched.limits = limits
    app = create_app(Settings(limits=limits), ROUTES)
    with serving(app, http=Watched) as address, ExitStack() as room:
        request = b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        started(address, request, room)
        assert gone.wait(20)


def test_whoever_waits_for_longest_makes_room_first_of_the_client_that_has_most():
    """Made-up connections: one client with three, two with one each, room for four."""

    class Waiting(Connection):
        def __init__(self, client, since, others):
            self.client, self.connections, self.dropped = (client, 1), others, False
            self._since, self._stage = since, "busy"
            others.add(self)

        is_waiting = property(lambda self: not self.dropped)

        def give_up(self):
            self.dropped = True
            self.connections.discard(self)

    others: set[Waiting] = set()
    Waiting.limits = ClientLimits(connections=3, connections_in_all=4)
    early, crowd = Waiting("a", 1.0, others), [Waiting("b", 2.0 + n, others) for n in range(3)]
    late = Waiting("c", 9.0, others)
    late._make_room()
    assert [one.dropped for one in (early, *crowd, late)] == [False, True, False, False, False]
    fourth = [Waiting("b", 10.0 + n, others) for n in range(2)]
    fourth[-1]._make_room()
    assert crowd[1].dropped
    assert not early.dropped


def test_what_is_no_http_gets_the_security_headers():
    with serving(create_app(Settings())) as address, ExitStack() as room:
        for nonsense in (b"\x16\x03\x01\x02\x00\r\n\r\n", HALF + b"Content-Length: x\r\n\r\n"):
            answer = said(started(address, nonsense, room))
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert HEADERS_TOO in answer


def test_a_client_that_hangs_up_in_the_middle_of_a_body_is_no_bug(caplog):
    with serving(create_app(Settings(), ROUTES)) as address:
        with ExitStack() as room:
            started(address, HALF_BODY, room)
        assert ask(address).status == 200
    assert caplog.text == ""
