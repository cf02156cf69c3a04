"""What is done with a run that exists already: a metric is added to it, or its samples are reused.

`dialeval score --add METRIC RUN` adds a metric to a finished run:

    runs/first/adding/            a run of its own, by the new metrics over the samples of the first
    runs/first/adding/joined/     scores with the columns of both, and the manifest of both

1. The new metrics are scored into `adding/`, like any run: in chunks, so that a killed one resumes.
2. Both are joined, row by row, in `adding/joined/`. Its manifest is written last.
3. The joined scores, then the joined manifest, take the place of the old ones; `adding/` goes.

A kill in 1 or 2 leaves the run as it was. A kill in 3 is put right by the same command, or by any
other addition: `joined/` holds everything. What was there is not scored again: its columns are
copied, and so are its records in the manifest, where `added` says what came later, and from which
versions.

`dialeval.score(..., known=RUN)` does not score the samples again that an earlier run holds. `Known`
stands between a job and what scores its chunks: it passes on the samples of a chunk that are new,
and takes the rows of the others, with raw values, from the earlier run. The result is the run that
scoring everything would give, byte for byte. An earlier run serves only if its metrics, models,
options and releases are those of the job.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.engine.answers import AnswerCounts
from dialeval.engine.chunk import Chunk, ScoredChunk, ThisProcess, count_again
from dialeval.errors import JobError
from dialeval.metric import Metric
from dialeval.runs.directory import ADDING, RunDirectory, raw_table, run_schema, shard_bytes
from dialeval.runs.manifest import NAME, file_records, sealed
from dialeval.runs.run import Run
from dialeval.runs.table import Pools
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
    """Returns the directory in which new metrics of a run are scored."""
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
    """Returns the metrics that joined the run later."""
    return {label for one in run.manifest.get("added", ()) for label in one["metrics"]}


class Known:
    """Scores what `run` does not hold, and takes the rest from it."""

    def __init__(self, workers: ThisProcess, run: Run, metrics: Sequence[Metric]) -> None:
        import pyarrow as pa

        self._workers = workers
        self._metrics = metrics
        schema = run_schema(metrics)
        batches = [batch.select(schema.names) for batch in run.batches()]
        self._table: pa.Table = raw_table(pa.Table.from_batches(batches).cast(schema), metrics)
        self._rows = {sample.digest(): row for row, sample in enumerate(run.samples())}

    def score(
        self, chunks: Iterator[Chunk], under_way: Callable[[int], None]
    ) -> Generator[ScoredChunk, None, None]:
        waiting: dict[int, Chunk] = {}
        whole: list[Chunk] = []

        def new() -> Iterator[Chunk]:
            for chunk in chunks:
                rest = [one for one in chunk.samples if one.digest() not in self._rows]
                if rest:
                    waiting[chunk.number] = chunk
                    yield Chunk(chunk.number, rest, chunk.digest)
                else:
                    whole.append(chunk)

        for scored in self._workers.score(new(), under_way):
            yield self._joined(waiting.pop(scored.number), scored)
        for chunk in whole:
            yield self._joined(chunk, None)

    def _joined(self, chunk: Chunk, scored: ScoredChunk | None) -> ScoredChunk:
        """Returns the shard of a chunk: rows of the earlier run, and those that were scored."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        known = [one for one in chunk.samples if one.digest() in self._rows]
        places = pa.array([self._rows[one.digest()] for one in known], pa.int64())
        tables = [self._table.take(places)]
        if scored is not None:
            fresh = pq.read_table(pa.BufferReader(scored.shard))
            tables.append(fresh.replace_schema_metadata(None))
        old, new = iter(range(len(known))), iter(range(len(known), len(chunk.samples)))
        order = [next(old if one.digest() in self._rows else new) for one in chunk.samples]
        table = pa.concat_tables(tables).take(order).combine_chunks()
        pools = scored.pools if scored else Pools(self._metrics)
        pools.merge(count_again(known, self._metrics))
        return ScoredChunk(
            chunk.number,
            len(chunk.samples),
            shard_bytes(table, chunk.digest),
            pools,
            scored.counts if scored else AnswerCounts(),
        )

    def report(self) -> Mapping[str, Any]:
        return self._workers.report()
