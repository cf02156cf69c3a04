"""Limits on the time of one connection, and on the connections of one client.

uvicorn waits for ever for the end of a request, so a few hundred half-sent ones would take all the
room there is. Here a connection has a deadline for its headers, one for its body and one for taking
our answer; `ClientLimits` holds the seconds. They run from the start of each stage: a byte now and
then does not extend them.

Connections are counted for each client and in all. Where there are too many, the one that has kept
us waiting for longest makes room, and not the newcomer: someone who sends a whole request is served
even while others hold theirs back, from the same address or not. A request that has come whole is
never dropped.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from dialeval.web.safety import SECURITY_HEADERS, ClientLimits

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
