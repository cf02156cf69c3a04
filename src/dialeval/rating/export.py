"""Ratings in files: samples with ratings as JSONL, CSV or Parquet, or every answer by itself.

jsonl, csv, parquet   one record per sample, as `agree`, `raters` and `load` read it. In a table a
                      rater has a column for each quality: `rating_overall__rater-1`
answers               one line of JSON for each answer that counts, with all that is known of it:
                      who, when, on which page, in which order, attention check or not

Text in CSV that a spreadsheet would run is neutralised (`spreadsheet.py`).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Any

from dialeval.errors import UsageError, did_you_mean
from dialeval.rating.results import rated_samples
from dialeval.rating.store import Store
from dialeval.sample import Sample
from dialeval.spreadsheet import neutralise
from dialeval.storage import PARQUET, atomic_path, sample_schema, samples_to_table

FORMATS = ("jsonl", "csv", "parquet", "answers")
ROWS_AT_ONCE = 4096


def export_ratings(store: Store, to: str, destination: Path, *, raw: bool = False) -> None:
    """Writes the ratings to a file; it appears whole or not at all."""
    with atomic_path(destination) as temporary:
        if to == "parquet":
            _write_parquet(store, temporary)
        else:
            with temporary.open("w", encoding="utf-8", newline="") as file:
                export_text(store, to, file, raw=raw)


def export_text(store: Store, to: str, file: IO[str], *, raw: bool = False) -> None:
    """Writes any of the text formats to an open file."""
    if to not in _WRITERS:
        raise UsageError(
            f"cannot export ratings to {to!r}.{did_you_mean(to, FORMATS)}"
            f" Known: {', '.join(FORMATS)}"
        )
    _WRITERS[to](store, file, raw)


def answer_records(store: Store) -> Iterator[dict[str, Any]]:
    """Every answer that counts. `shown` has the samples as they stood on the page. An answer is not
    lost with what it was given to: where the task is damaged, its kind says so."""
    tasks = {task.number: task for task in store.tasks()}
    for one in store.counted():
        task = tasks.get(one.task)
        if task is None:
            yield {
                "rater": one.rater,
                "page": one.position,
                "kind": f"damaged task {one.task}",
                "shown": [],
                "answers": dict(one.answers),
                "saved_at": one.saved_at,
            }
            continue
        ids = [sample.id for sample in task.samples]
        record: dict[str, Any] = {
            "rater": one.rater,
            "page": one.position,
            "kind": "repeat" if one.is_repeat else task.kind,
            "shown": ids[::-1] if one.is_flipped else ids,
        }
        if store.job.kind == "compare":
            record["systems"] = [sample.system for sample in task.samples]
            record["first"] = ids[0]
        record["answers"] = dict(one.answers)
        if task.kind == "check":
            record["passed"] = store.job.passes(one.answers)
        yield record | {"saved_at": one.saved_at}


def _write_jsonl(store: Store, file: IO[str], raw: bool) -> None:
    for sample in rated_samples(store):
        file.write(_json(sample.to_record()) + "\n")


def _write_answers(store: Store, file: IO[str], raw: bool) -> None:
    for record in answer_records(store):
        file.write(_json(record) + "\n")


def _json(record: dict[str, Any]) -> str:
    """Readable, but for what UTF-8 cannot hold."""
    text = json.dumps(record, ensure_ascii=False)
    return text if _is_encodable(text) else json.dumps(record)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _write_csv(store: Store, file: IO[str], raw: bool) -> None:
    protect: Callable[[str], str] = (lambda text: text) if raw else neutralise
    raters = [rater.name for rater in store.raters()]
    columns = {
        (quality.name, rater): f"rating_{quality.name}__{rater}"
        for quality in store.job.qualities
        for rater in raters
    }
    writer = csv.writer(file)
    texts = ("id", "dialogue", "item", "system", "context", "response")
    writer.writerow([*texts, *map(protect, columns.values())])
    for sample in rated_samples(store):
        given = {
            (quality, rater): value
            for quality, rating in sample.ratings.items()
            for rater, value in zip(rating.raters, rating.values, strict=True)
        }
        ratings = [_number(given.get(key)) for key in columns]
        writer.writerow([*(protect(_storable(text)) for text in _texts(sample)), *ratings])


def _texts(sample: Sample) -> tuple[str, ...]:
    context = "\n".join(" ".join(turn.text.splitlines()) for turn in sample.context)
    names = (sample.id, sample.dialogue, sample.item, sample.system)
    return (*names, context, sample.response or "")


def _storable(text: str) -> str:
    """CSV has no escapes for what UTF-8 cannot hold, and none for NUL."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _write_parquet(store: Store, path: Path) -> None:
    import pyarrow.parquet as pq

    samples = rated_samples(store)
    with pq.ParquetWriter(path, sample_schema(), **PARQUET) as writer:
        while batch := list(islice(samples, ROWS_AT_ONCE)):
            writer.write_table(samples_to_table(batch))


_WRITERS: Mapping[str, Callable[[Store, IO[str], bool], None]] = {
    "jsonl": _write_jsonl,
    "csv": _write_csv,
    "answers": _write_answers,
}
