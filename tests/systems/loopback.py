"""A chat server on this machine that does as it is told, well or badly.

What it does with a request depends on its last message: one that starts with a word of `MANNERS`
is treated so, any other is answered politely.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MANNERS = (
    "fail500",
    "busy",
    "busydate",
    "slow",
    "drip",
    "empty",
    "mute",
    "truncated",
    "broken",
    "schema",
    "huge",
    "endless",
    "reset",
    "echo-key",
    "refuse-key",
    "web-page",
    "missing-page",
    "elsewhere",
    "key-as-host",
    "nearby",
    "once",
    "lengthy",
)


def completion(text: object, finish_reason: str = "stop") -> bytes:
    message = {"role": "assistant", "content": text}
    return json.dumps({"choices": [{"message": message, "finish_reason": finish_reason}]}).encode()


def rated(log_probs: dict[str, float]) -> bytes:
    """A completion of one token, with the most probable ones beside it."""
    rows = [{"token": token, "logprob": value} for token, value in log_probs.items()]
    said = {"message": {"role": "assistant", "content": rows[0]["token"]}}
    said["logprobs"] = {"content": [{**rows[0], "top_logprobs": rows}]}
    usage = {"prompt_tokens": 100, "completion_tokens": 1}
    return json.dumps({"choices": [said], "usage": usage}).encode()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, delay: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.delay = delay
        self.lock = threading.Lock()
        self.closing = threading.Event()
        """Set at the end: those that let a client wait need not wait themselves."""
        self.asked: Counter[str] = Counter()
        """How often each last message was received."""
        self.requests: list[dict] = []
        self.keys: list[str] = []
        """What came as `Authorization`."""
        self.headers_seen: list[dict[str, str]] = []
        self.times: list[float] = []
        self.busy = 0
        self.busiest = 0
        self.refuse_all = False
        self.log_probs: dict[str, float] = {}
        """Token -> natural log-probability, for requests that ask for log-probabilities."""
        self.says: list[str] = []
        """Where it is set, the replies, again and again."""
        self.right_key = ""
        """Where it is set, any other key gets a 401."""

    @property
    def address(self) -> str:
        return f"openai:{self.url}#polite"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request, client_address) -> None:
        """Clients that hang up are part of the game."""


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *args) -> None:
        pass

    def do_POST(self) -> None:
        record = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = record["messages"][-1]["content"]
        with self.server.lock:
            self.server.asked[text] += 1
            times = self.server.asked[text]
            self.server.requests.append({"path": self.path, **record})
            self.server.keys.append(self.headers.get("Authorization", ""))
            self.server.headers_seen.append(dict(self.headers))
            self.server.times.append(time.monotonic())
            self.server.busy += 1
            self.server.busiest = max(self.server.busiest, self.server.busy)
        time.sleep(self.server.delay)
        with self.server.lock:  # before the answer: whoever has it may ask the next at once
            self.server.busy -= 1
        manner = text.split()[0]
        if self.server.right_key not in self.headers.get("Authorization", ""):
            self.send(401, b'{"error": {"message": "Incorrect API key"}}')
        elif self.server.refuse_all:
            self.send(500, b"down for today")
        elif manner in MANNERS:
            getattr(self, manner.replace("-", "_"))(text, times)
        elif record.get("logprobs") and self.server.log_probs:
            self.send(200, rated(self.server.log_probs))
        elif self.server.says:
            self.send(200, completion(self.server.says[(times - 1) % len(self.server.says)]))
        else:
            self.send(200, completion(f"{text} Indeed, after {len(record['messages'])}."))

    def send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", headers.pop("length", str(len(body))))
        self.end_headers()
        self.wfile.write(body)

    def lengthy(self, text: str, times: int) -> None:
        self.send(200, completion("Well, to begin with", "length"))

    def fail500(self, text: str, times: int) -> None:
        self.send(500, b'{"error": {"message": "out of order"}}')

    def once(self, text: str, times: int) -> None:
        """Fails at the first attempt only."""
        self.send(503, b"") if times == 1 else self.send(200, completion("second time lucky"))

    def busy(self, text: str, times: int) -> None:
        if times == 1:
            self.send(429, b"slow down", Retry_After="1")
        else:
            self.send(200, completion("not busy any more"))

    def busydate(self, text: str, times: int) -> None:
        if times == 1:
            self.send(429, b"", Retry_After=formatdate(time.time() + 2, usegmt=True))
        else:
            self.send(200, completion("not busy any more"))

    def slow(self, text: str, times: int) -> None:
        self.server.closing.wait(60)
        self.send(200, completion("too late"))

    def drip(self, text: str, times: int) -> None:
        """A byte now and then, for a minute: no single read takes long."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
        for _ in range(1200):
            self.wfile.write(b"x")
            self.wfile.flush()
            if self.server.closing.wait(0.05):
                break

    def empty(self, text: str, times: int) -> None:
        self.send(200, b"")

    def mute(self, text: str, times: int) -> None:
        self.send(200, completion("  \n"))

    def truncated(self, text: str, times: int) -> None:
        self.send_response(200)
        body = completion("never heard to the end")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:30])
        self.close_connection = True

    def broken(self, text: str, times: int) -> None:
        self.send(200, completion("cut in the middle")[:30])

    def schema(self, text: str, times: int) -> None:
        self.send(200, b'{"answer": "in another form"}')

    def huge(self, text: str, times: int) -> None:
        self.send(200, completion("x" * 3_000_000))

    def endless(self, text: str, times: int) -> None:
        """Chunks without an end: only a bound while reading helps."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        block = b"x" * 65536
        for _ in range(1000):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(block), block))

    def reset(self, text: str, times: int) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def echo_key(self, text: str, times: int) -> None:
        said = self.headers["Authorization"]
        said = said.upper() if "loudly" in text else said
        self.send(200, completion(f"Your header is {said}."))

    def web_page(self, text: str, times: int, status: int = 200) -> None:
        head = f"<!doctype html>\n<p>\x1b[31m{'x' * 40} {self.headers['Authorization']}"
        self.send(status, head.encode() + b"<p>" * 1000)

    def missing_page(self, text: str, times: int) -> None:
        self.web_page(text, times, 404)

    def refuse_key(self, text: str, times: int) -> None:
        said = f"Incorrect API key: {self.headers['Authorization']}"
        self.send(400, json.dumps({"error": {"message": said}}).encode())

    def elsewhere(self, text: str, times: int) -> None:
        self.send(307, b"", Location="http://localhost:1/v1/chat/completions")

    def key_as_host(self, text: str, times: int) -> None:
        key = self.headers["Authorization"].removeprefix("Bearer ")
        forms = {"host": f"http://{key}.example/v1", "scheme": f"{key}://x", "path": f"//x/{key}"}
        self.send(307, b"", Location=forms[text.split()[1]])

    def nearby(self, text: str, times: int) -> None:
        if self.path.endswith("/moved"):
            self.send(200, completion("found it"))
        else:
            self.send(308, b"", Location=f"{self.path}/moved")


@contextmanager
def serving(delay: float = 0.0) -> Iterator[Server]:
    server = Server(delay)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
