"""A rating server in a thread, over a small job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from browser import serving

pytest.importorskip("starlette", reason="needs the extra 'web'")
pytest.importorskip("sqlalchemy", reason="needs the extra 'web'")


@dataclass(frozen=True)
class Site:
    """Where the pages are."""

    store: Any
    address: str

    def rater(self, number: int = 1) -> str:
        return f"/rate/{self.store.raters()[number - 1].token}"

    @property
    def organiser(self) -> str:
        return f"/organise/{self.store.organiser}"


@pytest.fixture
def site(tmp_path) -> Iterator[Callable[..., Site]]:
    """`site(job)`: a server over that job; it and its store are closed after the test."""
    from contextlib import ExitStack

    from dialeval.rating.opening import create_store
    from dialeval.web.serving import rating_app

    with ExitStack() as stack:

        def start(job: Any, raters: int = 2) -> Site:
            store = create_store(str(tmp_path / "ratings.db"), job, raters)
            stack.callback(store.close)
            address = stack.enter_context(serving(rating_app(store, "127.0.0.1", 8000)))
            return Site(store, address)

        yield start
