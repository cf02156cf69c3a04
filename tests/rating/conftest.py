"""A place for ratings: each test that asks for one runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest
from postgres import postgres, postgres_server  # noqa: F401

pytest.importorskip("sqlalchemy", reason="needs the extra 'web'")


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "ratings.db")
    return request.getfixturevalue("postgres")


@pytest.fixture(autouse=True)
def _closed_stores(monkeypatch):
    """Every store that a test opens is closed after it."""
    from dialeval.rating.store import Store

    opened, make = [], Store.__init__

    def remember(self, *arguments):
        make(self, *arguments)
        opened.append(self)

    monkeypatch.setattr(Store, "__init__", remember)
    yield
    for store in opened:
        store.close()
