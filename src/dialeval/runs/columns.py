"""The columns of scores in Parquet: one row per sample, a few columns per metric.

bleu            the value (empty where there is none)
bleu.bleu-1     a part; a list of numbers where the part is declared `many`
bleu.raw        the value before calibration, for metrics that have one (parts are always raw)
bleu.note       why there is no value, or a remark
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dialeval.errors import UsageError
from dialeval.metric import Metric
from dialeval.sample import Sample
from dialeval.scores import Calibration, CalibrationKind, Score
from dialeval.storage import sample_schema, samples_to_table

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
