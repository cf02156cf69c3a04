"""A finished run: what every later verb reads. Nothing is scored again, and no torch is needed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.errors import DialevalError, UsageError
from dialeval.remote import UrlPath, located
from dialeval.runs.directory import ADDING
from dialeval.runs.manifest import check_files, read_manifest
from dialeval.runs.table import ScoreTable, score_table
from dialeval.sample import Sample
from dialeval.scores import Calibration, Signature
from dialeval.storage import SCORE_AGAIN, atomic_path, open_parquet, sample_schema, table_to_samples
from dialeval.strict_json import Fields, parse

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

MOST_NAMED = 6
"""Runs in a message."""

SCORES = "scores.parquet"


class Run:
    """A run directory, opened. Large columns stay on disk until they are asked for."""

    def __init__(self, directory: Path, manifest: dict[str, Any]) -> None:
        self.directory = directory
        self.manifest = manifest

    @property
    def metrics(self) -> list[str]:
        """The labels of the metrics, in the order in which they were given."""
        return [metric["label"] for metric in self.manifest["metrics"]]

    @property
    def systems(self) -> list[str]:
        return [system["name"] for system in self.manifest["systems"]]

    @property
    def signatures(self) -> dict[str, Signature]:
        return {m["label"]: Signature.parse(m["signature"]) for m in self.manifest["metrics"]}

    @property
    def calibrations(self) -> dict[str, Calibration]:
        """The scales to pass to the next `score`, so that both runs share them: column -> scale."""
        records = {m["label"]: m["calibration"] for m in self.manifest["metrics"]}
        columns = {
            f"{label}.{part}" if part else label: scale
            for label, record in records.items()
            if record
            for part, scale in record.get("parts", {"": record}).items()
        }
        return {column: Calibration.from_record(scale) for column, scale in columns.items()}

    @property
    def score_files(self) -> list[Path]:
        """`scores.parquet`, or its parts in order where the run is so large that it has some."""
        named = [name for name in self.manifest.get("files", ()) if name.startswith(SCORES)]
        return [self.directory / name for name in named] or score_files(self.directory)

    @property
    def history(self) -> list[dict[str, Any]]:
        """When the run was started, resumed and finished, and how its questions were answered.

        It is for people, and no number comes from it: lines that cannot be read are left out.
        """
        path, events = self.directory / "history.jsonl", []
        for line in path.read_bytes().splitlines() if path.is_file() else ():
            with suppress(DialevalError):
                event = parse(line, path)
                events += [event] if _is_event(event, path) else []
        return events

    def __len__(self) -> int:
        return int(self.manifest["data"]["samples"])

    def __repr__(self) -> str:
        return f"<Run {self.directory}: {len(self)} samples, {', '.join(self.metrics)}>"

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def table(self, parts: bool = False) -> ScoreTable:
        """Systems down, metrics across: means, and system scores where a metric has its own."""
        return score_table(self.manifest, parts)

    def batches(
        self, columns: Sequence[str] | None = None, size: int = 8192
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of `scores.parquet`, some at a time."""
        for path in self.score_files:
            with open_parquet(path) as file:
                yield from file.iter_batches(batch_size=size, columns=columns)

    def samples(self) -> Iterator[Sample]:
        """Yields the samples that were scored, in their order."""
        for batch in self.batches(sample_schema().names):
            yield from table_to_samples(batch)

    def scores(self, label: str) -> list[float | None]:
        """Returns all values of one metric, in the order of the samples."""
        self._check_label(label)
        return [value for batch in self.batches([label]) for value in batch.column(0).to_pylist()]

    def raw_scores(self, label: str) -> list[float | None]:
        """Returns the values of a metric before they were put on a scale, where it has one."""
        self._check_label(label)
        column = f"{label}.raw"
        return [value for batch in self.batches([column]) for value in batch.column(0).to_pylist()]

    def to_arrow(self) -> pa.Table:
        """Returns one row per sample: names, texts, mean ratings, all scores (see
        `runs/export.py`)."""
        from dialeval.runs.export import to_arrow

        return to_arrow(self)

    def to_pandas(self) -> pd.DataFrame:
        """Returns the rows of `to_arrow` as a pandas frame."""
        from dialeval.runs.export import to_pandas

        return to_pandas(self)

    def to_polars(self) -> pl.DataFrame:
        """Returns the rows of `to_arrow` as a polars frame."""
        from dialeval.runs.export import to_polars

        return to_polars(self)

    def save(self, directory: str | Path) -> Run:
        """Copies this run to another place, which may be a URL."""
        destination = located(directory)
        if destination.exists():
            raise UsageError(f"{destination} exists already; choose another place for the run")
        if isinstance(destination, UrlPath):
            self._copy_to(destination)
            return open_run(destination)
        destination.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".run.", dir=destination.parent) as temporary:
            copy = Path(temporary) / "run"
            copy.mkdir()
            self._copy_to(copy)
            copy.rename(destination)
        return open_run(destination)

    def _copy_to(self, place: Path) -> None:
        """Copies the files, the manifest last."""
        others = (self.directory / name for name in ("job.json", "history.jsonl"))
        files = [*(path for path in others if path.exists()), *self.score_files]
        for path in (*files, self.directory / "manifest.json"):
            target = place / path.relative_to(self.directory)
            with (
                path.open("rb") as source,
                atomic_path(target) as temporary,
                temporary.open("wb") as copy,
            ):
                shutil.copyfileobj(source, copy, 1 << 20)

    def _check_label(self, label: str) -> None:
        if label not in self.metrics:
            raise UsageError(
                f"the run {self.directory} has no metric {label!r}; it has"
                f" {', '.join(self.metrics)}"
            )


def is_run(place: str | os.PathLike[str]) -> bool:
    """Returns whether a finished run lies there, in a directory or behind a URL."""
    try:
        return (located(place) / "manifest.json").is_file()
    except (OSError, UsageError):  # a URL of a database, a protocol that is not installed
        return False


def open_run(directory: str | Path) -> Run:
    """Opens what `dialeval score -o` wrote, in a directory or at a URL."""
    path = located(directory)
    if not (path / "manifest.json").is_file():
        raise UsageError(_why_no_run(path))
    manifest = read_manifest(path)
    if (path / ADDING / "joined" / "manifest.json").is_file():
        raise UsageError(
            f"{path}: a metric was joining this run, and was interrupted at the very end. Repeat"
            f" the command: dialeval score --add METRIC {path}"
        )
    if not score_files(path):
        raise UsageError(f"{path} is damaged: scores.parquet is missing. {SCORE_AGAIN}")
    check_files(path, manifest)
    return Run(path, manifest)


def score_files(directory: Path) -> list[Path]:
    """Returns the Parquet files that hold the scores of the run in a directory."""
    scores = directory / SCORES
    return [scores] if scores.is_file() else sorted(scores.glob("part-*.parquet"))


def _is_event(event: Any, path: Path) -> bool:
    """Returns whether a line of the history is one that `score` wrote."""
    fields = Fields(path)
    given = fields.mapping(event, "")
    fields.text(given.get("event"), "event")
    fields.text(given.get("time"), "time")
    for name in ("answers", "workers"):
        for key, number in fields.mapping(given.get(name, {}), name).items():
            fields.count(number, key)
    fields.texts(given.get("damaged", []), "damaged")
    return not fields.problems


def _why_no_run(path: Path) -> str:
    """Returns what lies there instead, and how to make a run of it."""
    if not path.exists():
        return (
            f"there is no run {str(path)!r}: no such folder. dialeval score FILE -o {path} makes it"
        )
    if path.is_file():
        run = f"runs/{path.name.partition('.')[0]}"
        return f"{path} is a file, not a run. Score it first: dialeval score {path} -o {run}"
    if (path / "job.json").exists():
        return (
            f"{path} is an unfinished run. Repeat the `dialeval score` command that started"
            " it to resume it."
        )
    if (path / "probe.json").exists():
        return (
            f"{path} is a probe, not a run. Score it first: dialeval score {path} -m diversity"
            " -m consistency -o RUN"
        )
    if inside := sorted(str(run.parent) for run in path.glob("*/manifest.json")):
        shown = inside if len(inside) <= MOST_NAMED else [*inside[:MOST_NAMED], "..."]
        return f"{path} is not a run, but holds some: {', '.join(shown)}"
    return f"{path} is not a run: it has no manifest.json. dialeval score FILE -o RUN makes one"
