"""The directory that a training writes into: one training at a time, never over a finished one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dialeval.errors import UsageError
from dialeval.models.store import write_record
from dialeval.models.weights import side_files, weight_files
from dialeval.storage import held


def refuse_finished(out: Path) -> None:
    """Before anything is read: what took hours is not overwritten."""
    if (out / "card.json").exists():
        raise UsageError(f"{out} already holds a trained model. Choose another -o.")


@contextmanager
def exclusive(out: Path) -> Iterator[None]:
    """Makes the directory and holds it; what was trained lies there without a lock in the end.

    A record of its files is left beside them, so that damage is found when the model is used.
    """
    with held(out):
        try:
            yield
            if (out / "card.json").exists():
                write_record(out, {}, [*weight_files(out), *side_files(out)])
        finally:
            (out / ".lock").unlink(missing_ok=True)
