"""A web server on the loopback interface that serves one file, well or badly, on purpose."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """What the server sends, how, and what it was asked for.

    ranges    it understands Range (and If-Range)
    drops     how many times the connection breaks after `drop_after` bytes
    redirect  path -> where it sends the client
    status    what it answers instead of 200
    """

    files: dict[str, bytes]
    ranges: bool = True
    etag: str = '"v1"'
    drops: int = 0
    drop_after: int = 0
    delay: float = 0.0
    status: dict[str, int] = field(default_factory=dict)
    redirect: dict[str, str] = field(default_factory=dict)
    claimed_length: int | None = None
    wrong_range: bool = False
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    base: str = ""


@contextmanager
def serving(served: Served) -> Iterator[Served]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(served))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    served.base = f"http://127.0.0.1:{server.server_port}"
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(served: Served) -> Callable[..., BaseHTTPRequestHandler]:
    stopped = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *ignored: object) -> None:
            pass

        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            served.asked.append((self.path, wanted))
            if self.path in served.redirect:
                self.send_response(302)
                self.send_header("Location", served.redirect[self.path])
                self.end_headers()
                return
            status = served.status.get(self.path, 200)
            if self.path not in served.files or status != 200:
                self.send_error(status if status != 200 else 404)
                return
            self.serve(served.files[self.path], wanted)

        def serve(self, content: bytes, wanted: str | None) -> None:
            start = 0
            if wanted and served.ranges and self.headers.get("If-Range") == served.etag:
                start = int(wanted.removeprefix("bytes=").partition("-")[0])
                if start >= len(content):
                    self.send_error(416)
                    return
                said = 0 if served.wrong_range else start
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {said}-{len(content) - 1}/{len(content)}")
            else:
                self.send_response(200)
            body = content[start:]
            if served.etag:
                self.send_header("ETag", served.etag)
            length = len(body) if served.claimed_length is None else served.claimed_length
            self.send_header("Content-Length", str(length))
            self.end_headers()
            if served.drops:
                served.drops -= 1
                self.wfile.write(body[: served.drop_after])
                self.close_connection = True
                return
            stopped.wait(served.delay)
            self.wfile.write(body)

    return Handler
