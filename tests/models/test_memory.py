"""Freed memory goes back to the system."""

import platform
import subprocess
import sys

import pytest

from dialeval.models import loading

FREED = """
from pathlib import Path
from dialeval.models import loading

def resident_kilobytes():
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))

blocks = [(bytearray(100_000), bytearray(600)) for _ in range(400)]
kept = [small for _, small in blocks]
del blocks
before = resident_kilobytes()
loading.give_back()
print(before - resident_kilobytes())
"""


def test_what_lies_between_small_things_that_live_on_is_given_back():
    """In a process of its own: in the holes of a used heap the small things would lie elsewhere."""
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("only glibc keeps what was freed, and can be told to give it back")
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 20_000


def test_another_c_library_is_no_obstacle(monkeypatch):
    loading._malloc_trim.cache_clear()
    monkeypatch.setattr(loading.ctypes, "CDLL", lambda name: object())
    loading.give_back()
    loading._malloc_trim.cache_clear()
