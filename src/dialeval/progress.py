"""Progress of long work: a callback that receives numbers, or the steps of a fetch.

In a notebook, the public functions show a bar of their own unless the caller brings a callback.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal, TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Receives how much is done, and of how much (0: unknown)."""


def silent(done: int, total: int) -> None:
    """Ignores all progress."""


def usual_progress(what: str) -> Progress:
    """Returns what a public function reports to if the caller named nothing: a bar in a
    notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or not hasattr(shell, "kernel"):  # a terminal or a script
        return silent
    return NotebookBar(what)


class NotebookBar:
    """A bar below the cell of a notebook, redrawn a few times a second."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._handle: Any = None
        self._shown = -math.inf

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._shown < _EVERY and not (total and done >= total):
            return
        self._shown = now
        from IPython.display import HTML, display

        share = f' value="{done}" max="{total}"' if total else ""
        of = f" of {total:,}" if total else ""
        bar = HTML(f"<progress{share}></progress> {escape(self.what)}: {done:,}{of}")
        if self._handle is None:
            self._handle = display(bar, display_id=True)
        else:
            self._handle.update(bar)


Stage = Literal["wait", "download", "check", "convert", "notice", "ready"]
"""
wait      another process fetches the same model
download  `done` of `total` bytes have arrived
check     hashes are computed and compared
convert   a quantised file becomes safetensors
notice    `text` is worth reading
ready     the model is here
"""

_EVERY = 0.2
"""Seconds between two looks at a growing directory, and between two pictures of a bar."""


@dataclass(frozen=True, slots=True)
class Step:
    """The step that a fetch of `model` is at; bytes are 0 if they mean nothing."""

    model: str
    stage: Stage
    done: int = 0
    total: int = 0
    text: str = ""


FetchProgress: TypeAlias = Callable[[Step], None]


def silent_fetch(step: Step) -> None:
    """Ignores all progress."""


@contextmanager
def watch_bytes(directory: Path, model: str, total: int, progress: FetchProgress) -> Iterator[None]:
    """Reports how a directory grows while the block runs; a downloader needs no callback for it."""
    before = directory_size(directory)
    stop = threading.Event()

    def report() -> None:
        while not stop.wait(_EVERY):
            arrived = max(0, directory_size(directory) - before)
            progress(Step(model, "download", min(arrived, total), total))

    watcher = threading.Thread(target=report, daemon=True)
    progress(Step(model, "download", 0, total))
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()
    progress(Step(model, "download", total, total))


def directory_size(directory: Path) -> int:
    """Bytes of all files below. What vanishes meanwhile does not count; a link is tiny."""
    size = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                size += Path(folder, name).lstat().st_size
    return size
