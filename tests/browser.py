"""A real browser for tests: an app on a free loopback port, Chromium before it.

The fixtures stand in `conftest.py`, once: a process can hold one playwright only. A test says what
it looks at:

    def test_something(open_page):
        with serving(app) as address:
            visit = open_page(address, width=390, dark=True)
            visit.follow(visit.page.get_by_role("link", name="next").click)
            assert visit.is_quiet()

Tests that need Chromium skip, with the reason, where it or playwright is absent.
"""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


PATIENCE = 30_000
"""Milliseconds: a busy machine is slow, not broken."""


@contextmanager
def serving(app: Any, **settings: Any) -> Iterator[str]:
    """Runs the app in a thread, as `dialeval serve` would; yields its address, such as
    `http://127.0.0.1:41234`. `settings` are those of uvicorn."""
    uvicorn = pytest.importorskip("uvicorn", reason="needs the extra 'web'")
    from dialeval.web.serving import configuration

    config = configuration(app)
    for name, value in settings.items():
        setattr(config, name, value)
    server = uvicorn.Server(config)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + PATIENCE / 1000
    while not server.started:
        assert thread.is_alive(), "the server stopped at once"
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE / 1000)
        listening.close()


@dataclass
class Visit:
    """A page in the browser, all that it said and all that it asked for."""

    page: Any
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def follow(self, act: Callable[[], Any]) -> None:
        """Acts, then waits until the page that this leads to is there, its script included.

        A click returns before its navigation begins: what is asked next may still be asked of
        the old page, or of one that is half built.
        """
        with self.page.expect_navigation():
            act()

    def is_quiet(self) -> bool:
        """Nothing on the console, no request to anywhere but loopback (or a file)."""
        assert self.console == []
        assert [url for url in self.requests if not _is_local(url)] == []
        return True


def _is_local(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("file", "data", "blob") or parts.hostname in (
        "127.0.0.1",
        "localhost",
        "::1",
    )


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One browser for all tests of a session."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no Chromium here: install the package 'chromium'")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, headless=True, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Visit]]:
    """Opens an address, or a file by its path, in a window of its own."""
    windows = []

    def open_(
        address: str | Path,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        **options: Any,
    ) -> Visit:
        window = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            **options,
        )
        window.set_default_timeout(PATIENCE)
        windows.append(window)
        visit = Visit(window.new_page())
        visit.page.on("console", lambda message: visit.console.append(message.text))
        visit.page.on("pageerror", lambda error: visit.console.append(f"error: {error}"))
        visit.page.on("request", lambda request: visit.requests.append(request.url))
        visit.page.goto(address.resolve().as_uri() if isinstance(address, Path) else address)
        return visit

    yield open_
    for window in windows:
        window.close()
