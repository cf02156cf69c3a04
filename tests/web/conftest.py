"""The browser, and a page over a small run."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import serving
from made_up import samples

pytest.importorskip("starlette", reason="needs the extra 'web'")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A directory with one run, `first`: 120 responses of 1 to 7 words, by systems a and b."""
    from dialeval import score

    score(samples(120), ["length", "distinct"], out=tmp_path / "runs" / "first")
    return tmp_path / "runs"


@pytest.fixture
def page(runs):
    """The address of a page over `runs`."""
    from dialeval.web.frame import Settings, create_app

    with serving(create_app(Settings(roots=(runs,)))) as address:
        yield address
