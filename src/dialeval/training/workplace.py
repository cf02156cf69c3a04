"""The directory that a training writes into: one training at a time, never over a finished one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dialeval.errors import DialevalError, UsageError
from dialeval.model_store.store import RECORD, write_record
from dialeval.model_store.weights import side_files, weight_files
from dialeval.storage import held
from dialeval.training.loop import forget_checkpoint


def refuse_finished(out: Path) -> None:
    """Before anything is read: what took hours is not overwritten.

    A training that was killed in its last moment is brought to its end: record, no checkpoint.
    """
    if (out / "card.json").exists():
        with suppress(OSError, DialevalError), exclusive(out):
            forget_checkpoint(out)
        raise UsageError(f"{out} already holds a trained model. Choose another -o.")


@contextmanager
def exclusive(out: Path) -> Iterator[None]:
    """Makes the directory and holds it; what was trained lies there without a lock in the end.

    A record of its files is left beside them, so that damage is found when the model is used.
    """
    with held(out):
        for leftover in out.glob(".*.*.*"):  # what a killed process was writing
            leftover.unlink()
        try:
            yield
            if (out / "card.json").exists() and not (out / RECORD).exists():
                write_record(out, {}, [*weight_files(out), *side_files(out)])
        finally:
            (out / ".lock").unlink(missing_ok=True)
