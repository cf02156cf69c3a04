"""Runs the command in this process, with a deadline, and says what must never happen.

A process for each case would take a hundred times as long. What the command prints is caught; an
exception that it would end with as a traceback is kept in `Tried.crash`.
"""

from __future__ import annotations

import io
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer.main

from dialeval.cli import app, main
from dialeval.errors import DialevalError

SECONDS = 30.0
"""Of computing: a case takes some hundredths of a second, however busy the machine is."""
WAITING = 20.0
"""Times as long may pass on the clock, for what waits and computes nothing."""


class HangError(BaseException):
    """No `Exception`, so that nobody on the way takes it for one of their own."""


@dataclass(frozen=True)
class Tried:
    arguments: tuple[str, ...]
    code: int
    out: bytes
    err: str
    crash: str = ""

    @property
    def complaint(self) -> str:
        """What is wrong with the way in which it ended; nothing where all is well."""
        if self.crash:
            return self.crash
        if self.code not in (0, 1, 2):
            return f"exit code {self.code}"
        if "Traceback (most recent call last)" in self.err or b"Traceback (most" in self.out:
            return "a traceback was printed"
        if self.code and not (self.err.strip() or self.out.strip()):
            return f"exit code {self.code} without a word"
        return ""


@cache
def _command() -> Any:
    """The verbs, gathered once: that takes longer than most of them."""
    return typer.main.get_command(app.app)


@contextmanager
def deadline(seconds: float = SECONDS) -> Iterator[None]:
    """Raises `HangError` in the block when its time is over."""

    def over(number: int, frame: Any) -> None:
        raise HangError(f"no end after {seconds:g} s")

    timers = (
        (signal.ITIMER_PROF, signal.SIGPROF, 1.0),
        (signal.ITIMER_REAL, signal.SIGALRM, WAITING),
    )
    before = {number: signal.signal(number, over) for _, number, _ in timers}
    for timer, _, times in timers:
        signal.setitimer(timer, seconds * times)
    try:
        yield
    finally:
        for timer, number, _ in timers:
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def run(*arguments: str | Path, seconds: float = SECONDS) -> Tried:
    """`dialeval ARGUMENTS`, to its end or to its deadline."""
    words = tuple(str(one) for one in arguments)
    kept = sys.argv, sys.stdin, app.app_for
    sys.argv, sys.stdin = ["dialeval", *words], io.TextIOWrapper(io.BytesIO())
    app.app_for = lambda arguments: _command()
    try:
        return run_function(main, words, seconds)
    finally:
        sys.argv, sys.stdin, app.app_for = kept


def run_function(
    function: Callable[[], object], words: tuple[str, ...] = (), seconds: float = SECONDS
) -> Tried:
    """A function of the library, judged like a command: its own errors are messages."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    code, crash = 0, ""
    try:
        with (
            redirect_stdout(out),
            redirect_stderr(err),
            deadline(seconds),
            warnings.catch_warnings(),  # the tests make errors of them, the command does not
        ):
            warnings.simplefilter("ignore", RuntimeWarning)
            function()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except (DialevalError, OSError) as error:
        code = getattr(error, "exit_code", 1)
        err.write(str(error))
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException:  # a panic in a library that is written in Rust is no Exception
        crash = "".join(traceback.format_exc(limit=-6))
    for stream in (out, err):
        stream.flush()
    said = err.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]
    return Tried(words, code, out.buffer.getvalue(), said, crash)  # type: ignore[attr-defined]
