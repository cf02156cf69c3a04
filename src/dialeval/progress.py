"""How long work tells how far it is: a callback that receives numbers, or the steps of a fetch."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Receives how much is done, and of how much (0: unknown)."""


def silent(done: int, total: int) -> None:
    """For callers that do not want to know."""


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
"""Seconds between two looks at a growing directory."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a fetch of `model` does now; bytes are 0 where they mean nothing."""

    model: str
    stage: Stage
    done: int = 0
    total: int = 0
    text: str = ""


FetchProgress: TypeAlias = Callable[[Step], None]


def silent_fetch(step: Step) -> None:
    """For callers that do not want to know."""


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
