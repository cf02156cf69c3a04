"""The server is killed in the middle of its work: nothing acknowledged is lost, nothing doubled."""

from __future__ import annotations

import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "rating.py"


@pytest.fixture(scope="module")
def load():
    spec = importlib.util.spec_from_file_location("rating_benchmark", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_eight_raters_lose_nothing_when_the_server_is_killed(load):
    # In a thread of its own: the browser of other tests has an event loop in this one.
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(load.run, raters=8, seconds=2, think=0.02, db="", dialogues=20)
        outcome = running.result(300)
    assert outcome.resent > 0, "the kill went unnoticed: this test would prove nothing"
    assert outcome.saves > 8
    assert outcome.lost == 0
    assert outcome.doubled == 0
