"""Requests that no browser sends: never a 500, always the security headers, nothing in the log."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from . import material
from .mutations import TOKENS
from .trying import deadline

pytest.importorskip("starlette", reason="needs the extra 'web'")
pytest.importorskip("sqlalchemy", reason="needs the extra 'web'")

TOKEN = "correct-horse-battery"
METHODS = ("GET", "GET", "GET", "POST", "POST", "HEAD", "PUT", "OPTIONS", "", "G\x00T")
NAMES = (
    b"host", b"origin", b"cookie", b"content-length", b"content-type", b"sec-fetch-site",
    b"accept", b"x-csrf-token", b"if-none-match", b"transfer-encoding", b"referer", b"x",
)  # fmt: skip
PIECES = (
    *TOKENS, b"http://[", b"http://[::1", b"http://127.0.0.1:99999999999", b"null", b"same-origin",
    b"[", b"127.0.0.1", b"localhost:8000", b"evil.example", b"dialeval-visitor-8000=" + b"a" * 43,
    b"a=b; c", b"multipart/form-data; boundary=x", b"multipart/form-data",
    b"application/x-www-form-urlencoded", b"%", b"%zz", b"%ff%fe", b"%00", b"/", b"//", b"/../",
    b"?", b"#", b"&", b"token=" + TOKEN.encode(), b"low=1e999", b"low=nan&metric=length",
    b"page=" + b"9" * 30, b"sort=length&order=down", b"text=%ed%a0%80", b"system=0&note=1",
    b"run=a&run=b", b"9" * 5000, b"-1", b"1", b"12", b"\xc3\xa9",
)  # fmt: skip


def answer(app: Any, scope: dict[str, Any], body: list[bytes]) -> list[dict[str, Any]]:
    """What the application sends, without a server between."""
    sent: list[dict[str, Any]] = []
    parts = [
        {"type": "http.request", "body": piece, "more_body": number < len(body) - 1}
        for number, piece in enumerate(body)
    ]

    async def receive() -> dict[str, Any]:
        return parts.pop(0) if parts else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return sent


def made_up_request(rng: random.Random, paths: list[str]) -> tuple[dict[str, Any], list[bytes]]:
    path = bytearray(rng.choice(paths).encode())
    query = rng.choice((b"", b"", rng.choice(PIECES), b"&".join(rng.choices(PIECES, k=3))))
    for _ in range(rng.randrange(3)):
        place = rng.randrange(len(path) + 1)
        path[place:place] = rng.choice(PIECES)
    headers = [(b"host", b"127.0.0.1:8000")] if rng.random() < 0.9 else []
    for _ in range(rng.randrange(5)):
        headers.append((rng.choice(NAMES), b"".join(rng.choices(PIECES, k=rng.choice((1, 1, 2))))))
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": rng.choice(METHODS),
        "scheme": "http",
        "path": bytes(path).decode("utf-8", "replace"),
        "raw_path": bytes(path),
        "root_path": "",
        "query_string": query,
        "headers": headers,
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 8000),
        "state": {},
    }
    body = [b"".join(rng.choices(PIECES, k=rng.randrange(6))) for _ in range(rng.choice((1, 1, 2)))]
    return scope, body


def test_no_request_is_met_with_a_500_or_without_the_security_headers(
    tmp_path: Path, request, caplog
):
    from dialeval.rating.opening import open_store
    from dialeval.web.frame import Settings, create_app
    from dialeval.web.pages import run_id
    from dialeval.web.safety import ClientLimits
    from dialeval.web.serving import rating_app

    (tmp_path / "runs").mkdir()
    material.finished_run(tmp_path / "runs")
    material.ratings(tmp_path)
    store = open_store(str(tmp_path / "ratings.db"))
    assert store is not None
    limits = ClientLimits(burst=10**9)
    roots = (tmp_path / "runs",)
    run = f"/run/{run_id(tmp_path / 'runs' / 'run')}"
    rater = f"/rate/{store.raters()[0].token}"
    served = [
        (
            create_app(Settings(roots=roots, limits=limits)),
            ["/", run, f"{run}/0", f"{run}/0/what-if", "/compare", "/static/page.css"],
        ),
        (create_app(Settings(roots=roots, limits=limits, token=TOKEN)), ["/", run]),
        (
            rating_app(store, "127.0.0.1", 8000),
            [rater, f"{rater}/1", f"{rater}/done", f"/organise/{store.organiser}"],
        ),
    ]
    option = request.config.getoption
    try:
        for number in range(option("--fuzz-budget")):
            rng = random.Random(f"{option('--fuzz-seed')} requests {number}")
            app, paths = rng.choice(served)
            scope, body = made_up_request(rng, paths)
            with deadline():
                sent = answer(app, scope, body)
            asked = (scope["method"], scope["raw_path"], scope["query_string"], *scope["headers"])
            about = f"request {number}: {', '.join(str(one)[:90] for one in asked)}"
            if sent:  # nobody is answered who hangs up in the middle of a body
                assert sent[0]["status"] < 500, f"{about}\n{caplog.text}"
                found = {name for name, _ in sent[0]["headers"]}
                assert {b"content-security-policy", b"x-content-type-options"} <= found, about
            assert caplog.text == "", about
    finally:
        store.close()
