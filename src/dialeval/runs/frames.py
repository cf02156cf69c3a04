"""A run as a data frame: one row per sample, the columns that `dialeval export --to csv` writes.

id, dialogue, item, system    names
context, response             texts; the turns of a context stand below each other
rating_QUALITY                the mean over the raters
METRIC, METRIC.PART, ...      scores; a list of numbers where a part has several
METRIC.note                   why there is no score

pandas and polars are imported here only, and only if somebody asks for their frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dialeval.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from dialeval.runs.run import Run

NAMES = ("id", "dialogue", "item", "system")


def flat_batches(run: Run) -> Iterator[pa.Table]:
    """Yields the rows of a run, some at a time, all with the same columns."""
    import pyarrow as pa

    qualities, scored = _qualities(run), score_columns(run)
    for batch in run.batches():
        context = [
            "\n".join(turn["text"] for turn in turns)
            for turns in batch.column("context").to_pylist()
        ]
        columns: dict[str, Any] = {name: batch.column(name) for name in NAMES}
        columns |= {"context": pa.array(context, pa.string()), "response": batch.column("response")}
        ratings = [dict(pairs) for pairs in batch.column("ratings").to_pylist()]
        for quality in qualities:
            means = [_mean(one.get(quality)) for one in ratings]
            columns[f"rating_{quality}"] = pa.array(means, pa.float64())
        columns |= {name: batch.column(name) for name in scored}
        yield pa.table(columns)


def to_arrow(run: Run) -> pa.Table:
    import pyarrow as pa

    batches = list(flat_batches(run))
    if not batches:
        raise UsageError(f"the run {run.directory} holds no samples")
    return pa.concat_tables(batches)


def to_pandas(run: Run) -> pd.DataFrame:
    needed("pandas")
    return to_arrow(run).to_pandas()


def to_polars(run: Run) -> pl.DataFrame:
    frames: Any = needed("polars")
    frame: pl.DataFrame = frames.from_arrow(to_arrow(run))
    return frame


def needed(library: str) -> Any:
    import importlib

    try:
        return importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise UsageError(f"{library} is not installed: pip install {library}") from None


def _mean(rating: Mapping[str, Any] | None) -> float | None:
    given = [value for value in rating["values"] if value is not None] if rating else []
    return sum(given) / len(given) if given else None


def score_columns(run: Run) -> list[str]:
    """Returns the columns of the scores: of each metric the value, what it was made of, and a
    note."""
    columns = []
    for metric in run.manifest["metrics"]:
        label = metric["label"]
        columns.append(label)
        columns += [f"{label}.raw"] if metric["calibration"] else []
        columns += [f"{label}.{part['name']}" for part in metric["parts"]]
        columns.append(f"{label}.note")
    return columns


def _qualities(run: Run) -> list[str]:
    found: dict[str, None] = {}
    for batch in run.batches(["ratings"]):
        for ratings in batch.column(0).to_pylist():
            found.update(dict.fromkeys(quality for quality, _ in ratings))
    return list(found)
