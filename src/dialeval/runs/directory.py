"""The directory of a run while it is being written.

    runs/first/
      job.json         what was asked for, with its digest; a resumed job must ask for the same
      input/           samples that workers on Ray read here, while the job is running
      shards/          finished chunks, while the job is running: NUMBER-DIGEST.parquet, the digest
                       being that of the file, so that a damaged one is scored again
      history.jsonl    when it was started, resumed and finished (the only file with clock times)
      scores.parquet   samples and scores; of a very large run a directory of parts, which pandas,
                       polars, DuckDB and Spark read as one table, too
      manifest.json    signatures, options, data digest, versions, counts, calibration, summary,
                       the sha256 of the scores and of itself
      adding/          while a metric joins the finished run: `engine/adding.py`

A run without a manifest is unfinished. One process at a time may write. The directory may be a URL
(`s3://bucket/runs/first`).

`scores.parquet` has one row per sample, and a few columns per metric:

bleu            the value (empty where there is none)
bleu.bleu-1     a part; a list of numbers where the part is declared `many`
bleu.raw        the value before calibration, for metrics that have one (parts are always raw)
bleu.note       why there is no value, or a remark
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.errors import DialevalError, JobError, UsageError
from dialeval.metric import Metric
from dialeval.remote import UrlPath, located
from dialeval.sample import Sample
from dialeval.scores import Calibration, CalibrationKind, Score
from dialeval.storage import (
    PARQUET,
    atomic_path,
    locked,
    naming,
    record_digest,
    remove_tree,
    sample_schema,
    samples_to_table,
    write_json,
)
from dialeval.strict_json import read_object

if TYPE_CHECKING:
    import pyarrow as pa


RESERVED_PARTS = {"note", "raw"}


def score_fields(metric: Metric) -> list[tuple[str, str]]:
    """(column, kind) with kind `number`, `numbers` or `text`."""
    label = metric.label
    fields = [(label, "number")]
    if scaled_columns(metric):
        fields.append((f"{label}.raw", "number"))
    for part in metric.parts():
        fields.append((f"{label}.{part.name}", "numbers" if part.many else "number"))
    return [*fields, (f"{label}.note", "text")]


def scaled_columns(metric: Metric) -> dict[str, CalibrationKind]:
    """Column -> the kind of its scale: the value itself, or the parts that it is made of."""
    if metric.calibration:
        return {metric.label: metric.calibration}
    return {f"{metric.label}.{part}": kind for part, kind in metric.scales().items()}


def run_schema(metrics: Sequence[Metric]) -> pa.Schema:
    """Columns of a run's scores.parquet: the sample, then each metric."""
    import pyarrow as pa

    kinds = {"number": pa.float64(), "numbers": pa.list_(pa.float64()), "text": pa.string()}
    schema = sample_schema()
    for metric in metrics:
        _check_names(metric, schema.names)
        for column, kind in score_fields(metric):
            schema = schema.append(pa.field(column, kinds[kind]))
    return schema


def _check_names(metric: Metric, taken: Sequence[str]) -> None:
    parts = {part.name for part in metric.parts()}
    if clash := parts & RESERVED_PARTS:
        raise UsageError(f"metric {metric.name!r}: a part may not be called {sorted(clash)[0]!r}")
    if metric.label in taken:
        raise UsageError(f"metric {metric.name!r}: the name is taken by a column of the samples")


def chunk_to_table(
    samples: Sequence[Sample], scores: Sequence[Sequence[Score]], metrics: Sequence[Metric]
) -> pa.Table:
    """`scores[m][s]` is the score of metric m on sample s; values are still raw."""
    import pyarrow as pa

    schema = run_schema(metrics)
    of_samples = samples_to_table(samples)
    columns: dict[str, Any] = {name: of_samples.column(name) for name in of_samples.column_names}
    for metric, of_metric in zip(metrics, scores, strict=True):
        label = metric.label
        values = [score.value for score in of_metric]
        columns[label] = values
        if scaled_columns(metric):
            columns[f"{label}.raw"] = values
        for part in metric.parts():
            columns[f"{label}.{part.name}"] = [score.parts.get(part.name) for score in of_metric]
        columns[f"{label}.note"] = [score.note or None for score in of_metric]
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


def calibrate_table(
    table: pa.Table, metrics: Sequence[Metric], calibrations: Mapping[str, Calibration]
) -> pa.Table:
    """Returns the same rows with the calibrated values in place; the raw ones stay in
    `<label>.raw`."""
    import pyarrow as pa

    for metric in metrics:
        columns, label = scaled_columns(metric), metric.label
        if not columns or not calibrations.keys() >= columns.keys():
            continue
        raw = table.column(f"{label}.raw").to_pylist()
        if metric.calibration:
            values = [None if v is None else calibrations[label].apply(v) for v in raw]
        else:
            values = _combined(table, metric, raw, calibrations)
        position = table.schema.get_field_index(label)
        table = table.set_column(
            position, table.schema.field(position), pa.array(values, pa.float64())
        )
    return table


def raw_table(table: pa.Table, metrics: Sequence[Metric]) -> pa.Table:
    """Returns the rows of a finished run as they were before `calibrate_table`."""
    for metric in metrics:
        if scaled_columns(metric):
            position = table.schema.get_field_index(metric.label)
            raw = table.column(f"{metric.label}.raw")
            table = table.set_column(position, table.schema.field(position), raw)
    return table


def _combined(
    table: pa.Table,
    metric: Metric,
    raw: Sequence[float | None],
    calibrations: Mapping[str, Calibration],
) -> list[float | None]:
    """Returns values made of scaled parts. Where `score` gave none, there is none."""
    parts = {part: table.column(f"{metric.label}.{part}").to_pylist() for part in metric.scales()}

    def value(row: int) -> float:
        return metric.combine(
            {
                part: calibrations[f"{metric.label}.{part}"].apply(column[row])
                for part, column in parts.items()
            }
        )

    return [None if one is None else value(row) for row, one in enumerate(raw)]


def table_scores(table: pa.Table, metric: Metric) -> Iterator[Score]:
    """Yields the scores of one metric, row by row, as they were put in."""
    label = metric.label
    values = table.column(label).to_pylist()
    notes = table.column(f"{label}.note").to_pylist()
    parts = {part.name: table.column(f"{label}.{part.name}").to_pylist() for part in metric.parts()}
    for row, (value, note) in enumerate(zip(values, notes, strict=True)):
        found = {name: column[row] for name, column in parts.items() if column[row] is not None}
        yield Score(
            value,
            {name: tuple(v) if isinstance(v, list) else v for name, v in found.items()},
            note or "",
        )


DIGEST_KEY = b"dialeval.chunk.sha256"
"""In the footer of a chunk: what its job asked for, and its samples."""

SHARD_DIGITS = 32
ADDING = "adding"
"""The folder in which metrics that join a finished run are scored (`engine/adding.py`)."""

CONTENTS = (
    "job.json",
    "input",
    "shards",
    "history.jsonl",
    "scores.parquet",
    "manifest.json",
    ".lock",
    ADDING,
)


class RunDirectory:
    """Claims, writes and finishes the files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = located(path)
        self.damaged: list[str] = []
        """The files that were found damaged, and made again."""

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    @property
    def scores(self) -> Path:
        return self.path / "scores.parquet"

    def fresh_parts(self, count: int) -> list[Path]:
        """Returns where the scores are written; what an interrupted end left there is removed."""
        if self.scores.is_dir():
            remove_tree(self.scores)
        if count == 1:
            return [self.scores]
        self.scores.unlink(missing_ok=True)
        self.scores.mkdir()
        return [self.scores / f"part-{number:05d}.parquet" for number in range(count)]

    @contextmanager
    def exclusive(self, overwrite: bool = False) -> Iterator[None]:
        """Holds the directory, for a new run or the same one."""
        self._check_is_run_or_empty()
        with locked(self.path):
            if overwrite:
                self._clear()
            self._tidy()
            yield

    def start(self, job: Mapping[str, Any]) -> None:
        """Begins a run, or continues one that asked for the same."""
        path = self.path / "job.json"
        if path.exists():
            earlier = self._earlier(job)
            for key, value in job.items():
                if earlier.get(key) != value:
                    raise UsageError(
                        f"{self.path} holds an unfinished run with other {key}:\n"
                        f"{_difference(earlier.get(key), value)}\nRepeat the earlier command to"
                        " resume it, add --overwrite to start again, or choose another -o."
                    )
            self.record("resumed")
        else:
            self._write_job(job)
            self.record("started")
        (self.path / "shards").mkdir(exist_ok=True)

    def earlier_job(self) -> Mapping[str, Any]:
        """Returns what an unfinished run here asked for; nothing if there is none."""
        path = self.path / "job.json"
        if self.manifest.exists() or not path.exists() or self.job_damage():
            return {}
        return read_object(path)

    def _earlier(self, job: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns what was asked for before. If that cannot be read, the chunks know it, too: each
        carries the digest of its job, so those that are there are kept."""
        if problem := self.job_damage():
            self.damaged.append(problem)
            self._write_job(job)
            return job
        return {"engine": "local", **read_object(self.path / "job.json")}

    def job_damage(self) -> str:
        """Returns what is wrong with `job.json`; empty if nothing is."""
        path = self.path / "job.json"
        try:
            job = read_object(path, "the job of a run")
        except DialevalError as error:
            return str(error)
        seal = job.pop("sha256", None)  # None: made by an older dialeval
        whole = seal in (None, record_digest(job))
        return "" if whole else f"{path}: has changed since it was written"

    def count_shards(self) -> tuple[int, int]:
        """Returns how many finished chunks are whole, and how many are damaged."""
        whole = [_whole(path) is not None for path in (self.path / "shards").glob("*.parquet")]
        return sum(whole), len(whole) - sum(whole)

    def _write_job(self, job: Mapping[str, Any]) -> None:
        write_json(self.path / "job.json", {**job, "sha256": record_digest(job)})

    def holds_shard(self, number: int, digest: bytes) -> bool:
        """Is this chunk there already? Raises if another chunk lies in its place."""
        path = self._shard(number)
        if path is None:
            return False
        if (content := _whole(path)) is None:
            self.damaged.append(f"{path}: is damaged")
            path.unlink()
            return False
        if (_table(content).schema.metadata or {}).get(DIGEST_KEY) != digest:
            raise UsageError(
                f"{self.path} holds an unfinished run of other data or metrics (they differ in"
                f" chunk {number + 1}). Give the same input to resume it, add --overwrite to start"
                " again, or choose another -o."
            )
        return True

    def blocks(self) -> dict[int, tuple[str, Path]]:
        """Returns the finished blocks of a run on Ray: the digest of the input, and the shard."""
        found = {}
        for path in sorted((self.path / "shards").glob("*-*-*.parquet"), reverse=True):
            number, digest, _ = path.stem.split("-")
            found[int(number)] = digest, path
        return found

    def write_block(self, number: int, digest: str, shard: bytes) -> None:
        """Writes the shard of a block, under the digests of its input and of itself."""
        own = hashlib.sha256(shard).hexdigest()[:SHARD_DIGITS]
        name = f"{number:07d}-{digest}-{own}.parquet"
        with atomic_path(self.path / "shards" / name) as temporary:
            temporary.write_bytes(shard)

    def write_shard(self, number: int, shard: bytes) -> None:
        name = f"{number:06d}-{hashlib.sha256(shard).hexdigest()[:SHARD_DIGITS]}.parquet"
        with atomic_path(self.path / "shards" / name) as temporary:
            temporary.write_bytes(shard)

    def read_shard(self, number: int) -> pa.Table:
        """Reads a finished chunk, and compares it with its digest once more: hours may have
        passed."""
        path = self._shard(number)
        return read_whole(path or self.path / "shards" / f"{number:06d}-*.parquet")

    def _shard(self, number: int) -> Path | None:
        return next(iter((self.path / "shards").glob(f"{number:06d}-*.parquet")), None)

    def finish(self, manifest: Mapping[str, Any], **history: Any) -> None:
        """The manifest makes the run complete; the shards are not needed any more."""
        write_json(self.manifest, manifest)
        remove_tree(self.path / "shards")
        remove_tree(self.path / "input")
        self.record("finished", **history)

    def record(self, event: str, **more: Any) -> None:
        entry = {"event": event, "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **more}
        path, line = self.path / "history.jsonl", json.dumps(entry) + "\n"
        if isinstance(path, UrlPath):  # few stores can append
            before = path.read_bytes() if path.exists() else b""
            path.write_bytes(before + line.encode())
            return
        with naming(path), path.open("a", encoding="utf-8") as file:
            file.write(line)

    def _check_is_run_or_empty(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file; a run is a directory. Choose another -o.")
        if not self.path.is_dir():
            return
        foreign = [entry.name for entry in self.path.iterdir() if not self._is_ours(entry.name)]
        if foreign:
            raise UsageError(
                f"{self.path} is not a run: it holds {sorted(foreign)[0]!r}. Choose another -o."
            )

    @staticmethod
    def _is_ours(name: str) -> bool:
        temporary = name.startswith((".scores.parquet.", ".manifest.json.", ".job.json."))
        return name in CONTENTS or temporary

    def _tidy(self) -> None:
        """Removes what a killed process left: half-written files, and the shards of a run whose
        manifest was written."""
        shards = self.path / "shards"
        if self.manifest.exists():
            remove_tree(shards)
            remove_tree(self.path / "input")
        for place in (self.path, self.scores, shards):
            for leftover in place.glob(".*.*.*") if place.is_dir() else ():
                if leftover.is_file():
                    leftover.unlink()

    def _clear(self) -> None:
        if isinstance(self.path, UrlPath):
            self.path.remove_tree()
            return
        for entry in self.path.iterdir():
            if entry.is_dir():
                remove_tree(entry)
            elif entry.name != ".lock":
                entry.unlink()


def _difference(there: Any, here: Any) -> str:
    """Returns what only one of them has, one line each: most of two long lists is the same."""
    old, new = _entries(there), _entries(here)
    lines = [f"  there: {entry}" for entry in old if entry not in new]
    lines += [f"  here:  {entry}" for entry in new if entry not in old]
    return "\n".join(lines or ["  the same ones in another order"])


def _entries(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{name} {json.dumps(one)}" for name, one in value.items()]
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]


def _whole(path: Path) -> bytes | None:
    """Returns the content of a chunk, if it is what its name says."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:SHARD_DIGITS]
    return content if path.stem.endswith(f"-{digest}") else None


def read_whole(path: Path) -> pa.Table:
    """Reads a finished chunk or block, which must be what its name says."""
    if not path.exists() or (content := _whole(path)) is None:
        path.unlink(missing_ok=True)
        raise JobError(
            f"{path} was damaged while the run was under way. Repeat the command: this part is"
            " scored again, the others are kept."
        )
    return _table(content)


def _table(content: bytes) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Not `read_table`, which imports the part of pyarrow that reads folders of files.
    return pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True).read()


def shard_bytes(table: pa.Table, digest: bytes) -> bytes:
    """Returns a finished chunk as the file that is to lie in `shards/`, labelled with its
    digest."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    labelled = table.replace_schema_metadata({DIGEST_KEY: digest})
    with pa.BufferOutputStream() as file:
        pq.write_table(labelled, file, **PARQUET)
        shard: bytes = file.getvalue().to_pybytes()
    return shard
