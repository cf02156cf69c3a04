"""What all tests share: golden numbers, and where the real data sets lie."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


@pytest.fixture(scope="session")
def golden():
    """Numbers worked out outside dialeval, from the papers and their released files."""
    return json.loads((TESTS / "golden.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def datasets() -> Path:
    """The directory of public data sets, which are never part of this repository."""
    place = os.environ.get("DIALEVAL_DATA") or TESTS.parent.parent / "shared" / "datasets"
    if not Path(place).is_dir():
        pytest.skip("no data sets here: point DIALEVAL_DATA at them")
    return Path(place)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    """No test writes into the user's cache."""
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path_factory.mktemp("cache")))
