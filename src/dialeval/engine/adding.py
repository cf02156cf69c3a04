"""A metric joins a finished run: `dialeval score --add METRIC RUN`.

    runs/first/adding/            a run of its own, by the new metrics over the samples of the first
    runs/first/adding/joined/     scores with the columns of both, and the manifest of both

1. The new metrics are scored into `adding/`, like any run: in chunks, so that a killed one goes on.
2. Both are joined, row by row, in `adding/joined/`. Its manifest is written last.
3. The joined scores, then the joined manifest, take the place of the old ones; `adding/` goes.

A kill in 1 or 2 leaves the run as it was. A kill in 3 is put right by the same command, or by any
other addition: `joined/` holds everything. What was there is not scored again: its columns are
copied, and so are its records in the manifest, where `added` says what came later, and from which
versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.errors import JobError
from dialeval.runs.directory import ADDING, RunDirectory
from dialeval.runs.manifest import NAME, file_records, sealed
from dialeval.runs.run import Run
from dialeval.storage import (
    PARQUET,
    atomic_path,
    open_parquet,
    remove_tree,
    sample_schema,
    write_json,
)

if TYPE_CHECKING:
    import pyarrow as pa

JOINED = "joined"


def adding_place(directory: Path) -> Path:
    """Where new metrics of a run are scored."""
    return directory / ADDING


def finish_addition(directory: Path) -> None:
    """Puts joined files in place, if an addition was killed at its very end."""
    joined = adding_place(directory) / JOINED
    if not (joined / NAME).is_file():
        return
    here = RunDirectory(directory)
    new = joined / here.scores.name
    if new.exists():
        if here.scores.is_dir():
            remove_tree(here.scores)
        if new.is_dir():
            here.scores.unlink(missing_ok=True)
        new.replace(here.scores)
    (joined / NAME).replace(here.manifest)
    remove_tree(adding_place(directory))


def join_addition(run: Run, added: Run) -> None:
    """Joins a run with the one in its `adding/`."""
    if added.manifest["data"]["sha256"] != run.manifest["data"]["sha256"]:
        raise JobError(
            f"{run.directory}: its samples cannot be read back as they were. Score the file again"
            " with all metrics into another run."
        )
    joined = added.directory / JOINED
    remove_tree(joined)
    joined.mkdir()
    files = _write_scores(run, added, joined)
    manifest = _joined_manifest(run.manifest, added.manifest, file_records(joined, files))
    write_json(joined / NAME, manifest)
    history = added.history[-1] if added.history else {}
    finish_addition(run.directory)
    told = {
        name: history[name]
        for name in ("answers", "workers", "servers", "damaged")
        if name in history
    }
    RunDirectory(run.directory).record("added", metrics=added.metrics, **told)


def _write_scores(run: Run, added: Run, place: Path) -> list[Path]:
    """Files with the rows and row groups of the old ones, and the new columns behind."""
    import pyarrow.parquet as pq

    known = set(sample_schema().names)
    with open_parquet(added.score_files[0]) as file:
        new_fields = [field for field in file.schema_arrow if field.name not in known]
    more = _Columns(added, [field.name for field in new_fields])
    written = []
    for path in run.score_files:
        target = place / path.relative_to(run.directory)
        target.parent.mkdir(exist_ok=True)
        with open_parquet(path) as file, atomic_path(target) as temporary:
            schema = file.schema_arrow.remove_metadata()
            for field in new_fields:
                schema = schema.append(field)
            with pq.ParquetWriter(temporary, schema, **PARQUET) as writer:
                for number in range(file.metadata.num_row_groups):
                    table = file.read_row_group(number)
                    for field, column in more.take(len(table)):
                        table = table.append_column(field, column)
                    table = table.replace_schema_metadata(None)
                    writer.write_table(table, row_group_size=max(1, len(table)))
        written.append(target)
    return written


class _Columns:
    """The new columns, some rows at a time."""

    def __init__(self, run: Run, names: Sequence[str]) -> None:
        self._batches = run.batches(names)
        self._rest: list[pa.RecordBatch] = []

    def take(self, rows: int) -> Iterator[tuple[pa.Field, pa.ChunkedArray]]:
        import pyarrow as pa

        while sum(map(len, self._rest)) < rows:
            self._rest.append(next(self._batches))
        if not self._rest:
            return
        table = pa.Table.from_batches(self._rest)
        self._rest = table.slice(rows).to_batches()
        taken = table.slice(0, rows)
        yield from zip(taken.schema, taken.columns, strict=True)


def _joined_manifest(
    old: Mapping[str, Any], new: Mapping[str, Any], files: Mapping[str, Any]
) -> dict[str, Any]:
    scores = {system["name"]: system["scores"] for system in new["systems"]}
    addition = {
        "metrics": [metric["label"] for metric in new["metrics"]],
        "versions": new["versions"],
        "engine": new["engine"],
    }
    return sealed(
        {
            **old,
            "run_format": new["run_format"],
            "metrics": [*old["metrics"], *new["metrics"]],
            "systems": [
                {**system, "scores": {**system["scores"], **scores[system["name"]]}}
                for system in old["systems"]
            ],
            "files": files,
            "added": [*old.get("added", []), addition],
        }
    )


def added_labels(run: Run) -> set[str]:
    """The metrics that joined the run later."""
    return {label for one in run.manifest.get("added", ()) for label in one["metrics"]}
