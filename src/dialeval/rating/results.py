"""Ratings as samples, and their export.

If samples were rated, a sample has one number per rater and quality. If answers were compared, an
answer has the share of its comparisons that it won for each rater, from 0 to 1, where a tie is half
a win. Attention checks and repeated tasks are no ratings and are left out. What a rater wrote
beside the answers stands with the first quality.

jsonl, csv, parquet   one record per sample, as `agree`, `raters` and `load` read it. In a table a
                      rater has a column for each quality, `rating_overall__rater-1`, and in CSV
                      one for comments, `comment__rater-1`
answers               one line of JSON for each answer that counts: who, when, on which page, in
                      which order, attention check or not

Text in CSV that a spreadsheet would run is neutralised (`text.py`).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

from dialeval.errors import UsageError, did_you_mean
from dialeval.metric import Direction
from dialeval.rating.job import Job
from dialeval.rating.opening import open_store
from dialeval.rating.store import Counted, Store
from dialeval.sample import Rating, Sample
from dialeval.storage import PARQUET, atomic_path, sample_schema, samples_to_table
from dialeval.text import neutralise

Said = dict[str, dict[str, list[float]]]
"""Quality -> rater -> numbers."""

Wrote = dict[str, list[str]]
"""Rater -> comments."""


def rated_samples(store: Store) -> Iterator[Sample]:
    """Yields every sample of the job, with its ratings so far."""
    answers = first_answers(store.counted())
    names = sorted({one.rater for of_task in answers.values() for one in of_task}, key=_by_number)
    samples: dict[str, Sample] = {}
    said: dict[str, Said] = {}
    wrote: dict[str, Wrote] = {}
    for task in store.tasks("sample"):
        for place, sample in enumerate(task.samples):
            samples.setdefault(sample.id, sample)
            given = answers.get(task.number, [])
            _add(said.setdefault(sample.id, {}), given, place)
            for one in given:
                if one.comment:
                    wrote.setdefault(sample.id, {}).setdefault(one.rater, []).append(one.comment)
        if store.job.kind == "rate":
            sample = task.samples[0]
            own = _ratings(store.job, said.pop(sample.id), wrote.pop(sample.id, {}), names)
            yield replace(sample, ratings=own)
    if store.job.kind == "compare":
        for ident, sample in samples.items():
            own = _ratings(store.job, said[ident], wrote.get(ident, {}), names)
            yield replace(sample, ratings=own)


def scores_of(store: Store) -> dict[str, dict[str, float | None]]:
    """Metric -> id of the sample -> score, if the samples came from runs."""
    scores: dict[str, dict[str, float | None]] = {}
    for task in store.tasks("sample"):
        for sample, found in zip(task.samples, task.scores, strict=True):
            for metric, value in found.items():
                scores.setdefault(metric, {})[sample.id] = value
    return scores


@dataclass(frozen=True)
class Judged:
    """The ratings and scores of the same samples, from one database."""

    samples: list[Sample]
    scores: Mapping[str, Mapping[str, float | None]]
    directions: Mapping[str, Direction]


def judged_samples(path: str, needs_scores: bool = True) -> Judged:
    """For `dialeval agree ratings.db`: the job must have ratings, and be made from runs unless only
    the rated qualities are related to each other."""
    store = open_store(path, read_only=True)
    if store is None:
        raise UsageError(f"{path}: is empty")
    scores, samples = scores_of(store), list(rated_samples(store))
    directions = store.job.directions
    store.close()
    if needs_scores and not scores:
        raise UsageError(
            f"{path} holds ratings but no scores, as it was not made from runs. Score the same"
            f" samples and name the run: dialeval score {path} -o RUN, then dialeval agree {path}"
            " --scores RUN"
        )
    if not any(sample.ratings for sample in samples):
        raise UsageError(f"{path}: nobody has rated anything yet")
    known = {name: cast("Direction", directions[name]) for name in scores if name in directions}
    return Judged(samples, scores, known)


def first_answers(counted: list[Counted]) -> Mapping[int, list[Counted]]:
    """Task -> the answers of the raters who saw it for the first time."""
    answers: dict[int, list[Counted]] = {}
    for one in counted:
        if not one.is_repeat:
            answers.setdefault(one.task, []).append(one)
    return answers


def _add(said: Said, answers: list[Counted], place: int) -> None:
    for one in answers:
        for quality, value in one.answers.items():
            share = 1 - value if place == 1 else value
            said.setdefault(quality, {}).setdefault(one.rater, []).append(share)


def _ratings(job: Job, said: Said, wrote: Wrote, names: list[str]) -> dict[str, Rating]:
    ratings: dict[str, Rating] = {}
    comments = tuple("\n".join(wrote.get(name, ())) for name in names) if wrote else ()
    for quality in job.qualities:
        by_rater = said.get(quality.name, {})
        values = tuple(
            sum(by_rater[name]) / len(by_rater[name]) if name in by_rater else None
            for name in names
        )
        scale = (0.0, 1.0) if job.kind == "compare" else (float(quality.low), float(quality.high))
        if by_rater:
            ratings[quality.name] = Rating(values, scale, tuple(names), () if ratings else comments)
    return ratings


def _by_number(name: str) -> tuple[int, str]:
    return len(name), name


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
    """Yields every answer that counts. `shown` lists the samples in the order of the page. If the
    task is damaged, its kind says so, and the answer is kept."""
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
                **({"comment": one.comment} if one.comment else {}),
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
        if one.comment:
            record["comment"] = one.comment
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
    """Readable JSON, with escapes only if UTF-8 cannot hold the text."""
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
    written = [f"comment__{rater}" for rater in raters]
    writer.writerow([*texts, *map(protect, columns.values()), *map(protect, written)])
    for sample in rated_samples(store):
        given = {
            (quality, rater): value
            for quality, rating in sample.ratings.items()
            for rater, value in zip(rating.raters, rating.values, strict=True)
        }
        comments = {
            rater: comment
            for rating in sample.ratings.values()
            for rater, comment in zip(rating.raters, rating.comments, strict=False)
        }
        ratings = [_number(given.get(key)) for key in columns]
        said = [comments.get(rater, "") for rater in raters]
        writer.writerow(
            [
                *(protect(_storable(text)) for text in _texts(sample)),
                *ratings,
                *(protect(_storable(text)) for text in said),
            ]
        )


def _texts(sample: Sample) -> tuple[str, ...]:
    context = "\n".join(" ".join(turn.text.splitlines()) for turn in sample.context)
    names = (sample.id, sample.dialogue, sample.item, sample.system)
    return (*names, context, sample.response or "")


def _storable(text: str) -> str:
    """Replaces what CSV cannot hold: what UTF-8 cannot encode, and NUL."""
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
