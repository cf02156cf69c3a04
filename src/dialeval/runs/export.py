"""A run in the formats that other programs read.

csv, jsonl, parquet   one row per sample: who said what to whom, mean ratings, all scores
latex, markdown       the summary table, for papers and pages
langfuse, argilla     JSON for these tools; mlflow, wandb: a folder of theirs (`tool_exports.py`)
dstc10                dialogue_id and score: to hand in to an evaluation of metrics

Text in CSV that a spreadsheet would run is neutralised (`text.py`), unless the caller asks
for the text as it is. Numbers are never touched.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dialeval.errors import UsageError, did_you_mean
from dialeval.runs.frames import flat_batches
from dialeval.runs.tool_exports import FOLDERS, write_argilla, write_langfuse
from dialeval.storage import PARQUET, atomic_path
from dialeval.text import neutralise

if TYPE_CHECKING:
    from dialeval.runs.run import Run


def export(run: Run, to: str, destination: Path, *, raw: bool = False) -> None:
    """Writes the run to a file; it appears whole or not at all."""
    if destination.resolve().parent == run.directory.resolve():
        raise UsageError(f"{destination} lies in the run itself; choose another place for it")
    sources = [source["path"] for source in run.manifest["data"].get("sources", ())]
    if any(Path(source).resolve() == destination.resolve() for source in sources):
        raise UsageError(f"{destination} is what the run was made from; choose another file")
    if to in FOLDERS:
        FOLDERS[to](run, destination)
        return
    with atomic_path(destination) as temporary:
        if to == "parquet":
            _write_parquet(run, temporary)
        else:
            with temporary.open("w", encoding="utf-8", newline="") as file:
                export_text(run, to, file, raw=raw)


def export_text(run: Run, to: str, file: IO[str], *, raw: bool = False) -> None:
    """Writes any of the text formats to an open file."""
    if to not in _WRITERS:
        known = [*_WRITERS, "parquet", *FOLDERS]
        raise UsageError(
            f"cannot export to {to!r}.{did_you_mean(to, known)} Known: {', '.join(known)}"
        )
    _WRITERS[to](run, file, raw)


def _write_csv(run: Run, file: IO[str], raw: bool) -> None:
    writer = csv.writer(file)
    protect = (lambda text: text) if raw else neutralise
    for number, table in enumerate(flat_batches(run)):
        if number == 0:
            writer.writerow([protect(name) for name in table.column_names])
        for row in table.to_pylist():
            writer.writerow(
                ["" if cell is None
                 else cell if isinstance(cell, float)
                 else protect(_cell(cell))
                 for cell in row.values()]
            )  # fmt: skip


def _cell(cell: Any) -> str:
    return cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False)


def _write_jsonl(run: Run, file: IO[str], raw: bool) -> None:
    for row in _rows(run):
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _write_parquet(run: Run, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for batch in run.batches():
        table = pa.Table.from_batches([batch])
        writer = writer or pq.ParquetWriter(path, table.schema, **PARQUET)
        writer.write_table(table)
    if writer is None:
        raise UsageError(f"the run {run.directory} holds no samples to export")
    writer.close()


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    """Samples and scores as flat dictionaries, without ratings that a sample does not have."""
    for table in flat_batches(run):
        for row in table.to_pylist():
            yield {
                name: value
                for name, value in row.items()
                if value is not None or not name.startswith("rating_")
            }


def _write_markdown(run: Run, file: IO[str], raw: bool) -> None:
    file.write(run.table().as_text_table(width=10_000).markdown(raw))


def _write_latex(run: Run, file: IO[str], raw: bool) -> None:
    file.write(run.table().as_text_table(width=10_000).latex(raw))


def _write_dstc10(run: Run, file: IO[str], raw: bool) -> None:
    """One score for each sample, in the order of the file. The form that DSTC10 track 5 asked for
    stood in a document for its participants and is not public: this is what its organisers need to
    join scores, the id of their files and a number. A sample without a score has an empty cell."""
    labels = [label for label in run.metrics if label.partition(":")[0] == "mme-crs"]
    labels = labels if len(labels) == 1 else run.metrics
    if len(labels) != 1:
        raise UsageError(
            f"one score is handed in, but the run {run.directory} has {len(labels)} metrics:"
            f" {', '.join(labels)}. Score with a single one."
        )
    protect = (lambda text: text) if raw else neutralise
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["dialogue_id", "score"])
    for batch in run.batches(["id", labels[0]]):
        for ident, score in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            writer.writerow([protect(ident), "" if score is None else repr(score)])


_WRITERS: Mapping[str, Callable[[Run, IO[str], bool], None]] = {
    "csv": _write_csv,
    "jsonl": _write_jsonl,
    "markdown": _write_markdown,
    "latex": _write_latex,
    "dstc10": _write_dstc10,
    "langfuse": write_langfuse,
    "argilla": write_argilla,
}
