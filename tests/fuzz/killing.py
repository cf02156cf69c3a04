"""Ends a process in the middle of its work, at every place where that could matter.

    count = changes(work)                 # how often `work` writes, renames, removes or commits
    died = killed_at(work, 17)            # the 17th time it is killed instead, as by kill -9

The work is done by a copy of this process, which takes no time to start. It dies by SIGKILL: no
`finally`, no flush, no clean-up. What had been written lies on the disk as it does after a crash of
the program (a crash of the machine may lose more).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

MATTERS = {
    *("write", "flush", "fsync", "replace", "rename", "unlink", "remove", "rmdir", "mkdir", "open"),
    *("truncate", "chmod", "execute", "executemany", "commit"),
}
"""Names of built-in functions that change what is on the disk, or may."""

PATIENCE = 120.0


def changes(work: Callable[[], object]) -> int:
    """Does the work in another process, undisturbed; says how many places there are to die at."""
    return int(copy_of_this_process(lambda: _watched(work, lambda count: None)))


def killed_at(work: Callable[[], object], number: int) -> bool:
    """True if it was killed; False if it came to its end before."""

    def die(count: int) -> None:
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return copy_of_this_process(lambda: _watched(work, die), may_die=True) == b""


def copy_of_this_process(work: Callable[[], bytes], may_die: bool = False) -> bytes:
    """What the work returns when another process does it; nothing where that is killed."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():  # of threads that the copy does not have: it starts its own
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            silent = os.open(os.devnull, os.O_RDWR)
            for stream in (1, 2):
                os.dup2(silent, stream)
            os.write(writer, b"+" + work())
        except BaseException:
            sys.setprofile(None)
            os.write(writer, b"-" + traceback.format_exc(limit=-8).encode()[-8000:])
        finally:
            os._exit(0)
    os.close(writer)
    status = _ended(child)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    assert said.startswith(b"+") or (may_die and status == -signal.SIGKILL), said.decode()
    return said[1:]


def _watched(work: Callable[[], object], at: Callable[[int], None]) -> bytes:
    """The number of changes, each of which `at` is told of before it happens."""
    count = 0

    def watch(frame: Any, event: str, called: Any) -> None:
        nonlocal count
        if event == "c_call" and getattr(called, "__name__", "") in MATTERS:
            count += 1
            at(count)

    threading.setprofile(watch)
    sys.setprofile(watch)
    work()
    sys.setprofile(None)
    return str(count).encode()


def _ended(child: int) -> int:
    """Its exit code; a child that does not come to an end is ended."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError(f"no end after {PATIENCE:g} s")
        time.sleep(0.002)
