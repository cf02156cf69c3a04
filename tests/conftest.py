"""What all tests share: golden numbers, and where the real data sets lie."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from browser import chromium, open_page  # noqa: F401
from hypothesis import settings

from dialeval.storage import models_directory

TESTS = Path(__file__).parent

# Several tests run at a time, each on a core of its own: threads would wait for each other longer
# than they compute. Read by torch and numpy when they are first imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts background jobs with SIGINT ignored, and they hand this on to every program that a
# test starts and stops with Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same code gets the same verdict, also on a busy machine. To look for new examples:
# pytest --hypothesis-profile explore
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("steady")


def pytest_addoption(parser):
    fuzz = parser.getgroup("fuzz", "damaged files, tests/fuzz")
    fuzz.addoption("--fuzz-budget", type=int, default=300, help="how many files to damage, in all")
    fuzz.addoption("--fuzz-seed", type=int, default=0, help="another number damages in other ways")
    fuzz.addoption(
        "--fuzz-keep", action="store_true", help="keep what fails as a test, in tests/fuzz/kept"
    )


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


FETCHED = models_directory()
"""Where `dialeval models get` put the models, before any test changes the environment."""


@pytest.fixture
def embedded_models(monkeypatch):
    """The models of the default preset; answers are still cached apart."""
    pytest.importorskip("torch", reason="needs the extra 'models'")
    from dialeval.model_store.locate import list_models

    monkeypatch.setenv("DIALEVAL_MODELS", str(FETCHED))
    for model in list_models():
        if "default" in model.presets and not model.is_here:
            pytest.skip(f"{model.name} is not here: dialeval models get --preset default")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    """No test writes into the user's cache."""
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path_factory.mktemp("cache")))
