"""The directory that a training writes into: one training at a time, never over a finished one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dialeval.errors import UsageError
from dialeval.storage import held


def refuse_finished(out: Path) -> None:
    """Before anything is read: what took hours is not overwritten."""
    if (out / "card.json").exists():
        raise UsageError(f"{out} already holds a trained model. Choose another -o.")


@contextmanager
def exclusive(out: Path) -> Iterator[None]:
    """Makes the directory and holds it; what was trained lies there without a lock in the end."""
    with held(out):
        try:
            yield
        finally:
            (out / ".lock").unlink(missing_ok=True)
