"""How scores lie in Parquet: one row per sample, a few columns per metric.

bleu            the value (empty where there is none)
bleu.bleu-1     a part; a list of numbers where the part is declared `many`
bleu.raw        the value before calibration, for metrics that have one
bleu.note       why there is no value, or a remark
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dialeval.errors import UsageError
from dialeval.metric import Metric
from dialeval.sample import Sample
from dialeval.scores import Calibration, Score
from dialeval.storage import sample_schema, samples_to_table

if TYPE_CHECKING:
    import pyarrow as pa

RESERVED_PARTS = {"note", "raw"}


def score_fields(metric: Metric) -> list[tuple[str, str]]:
    """(column, kind) with kind `number`, `numbers` or `text`."""
    label = metric.label
    fields = [(label, "number")]
    if metric.calibration:
        fields.append((f"{label}.raw", "number"))
    for part in metric.parts():
        fields.append((f"{label}.{part.name}", "numbers" if part.many else "number"))
    return [*fields, (f"{label}.note", "text")]


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
        if metric.calibration:
            columns[f"{label}.raw"] = values
        for part in metric.parts():
            columns[f"{label}.{part.name}"] = [score.parts.get(part.name) for score in of_metric]
        columns[f"{label}.note"] = [score.note or None for score in of_metric]
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


def calibrate_table(table: pa.Table, calibrations: dict[str, Calibration]) -> pa.Table:
    """The same rows with the calibrated values in place; the raw ones stay in `<label>.raw`."""
    import pyarrow as pa

    for label, calibration in calibrations.items():
        raw = table.column(f"{label}.raw").to_pylist()
        values = [None if value is None else calibration.apply(value) for value in raw]
        position = table.schema.get_field_index(label)
        table = table.set_column(
            position, table.schema.field(position), pa.array(values, pa.float64())
        )
    return table


def table_scores(table: pa.Table, metric: Metric) -> Iterator[Score]:
    """The scores of one metric, row by row, as they were put in."""
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
