"""The directory that a training writes into: one training at a time, never over a finished one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from dialeval.errors import JobError, UsageError


def refuse_finished(out: Path) -> None:
    """Before anything is read: what took hours is not overwritten."""
    if (out / "card.json").exists():
        raise UsageError(f"{out} already holds a trained model. Choose another -o.")


@contextmanager
def exclusive(out: Path) -> Iterator[None]:
    """Makes the directory and holds it for this process."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{out} cannot be a directory: {error.strerror}. Choose another -o."
        ) from error
    lock = FileLock(out / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise JobError(f"another process is training into {out}") from None
    try:
        yield
    finally:
        lock.release()
        (out / ".lock").unlink(missing_ok=True)
