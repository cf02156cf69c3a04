"""Composes what an existing run holds, without asking any model: a table of scores by id, which
`dialeval agree FILE --scores` takes."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import numpy as np

from dialeval.compose.composition import Composition
from dialeval.compose.evidence import metric_columns, term_column
from dialeval.compose.leave_one_out import composed
from dialeval.errors import UsageError
from dialeval.spreadsheet import neutralise

if TYPE_CHECKING:
    from dialeval.run import Run


def apply_composition(composition: Composition, run: Run, quality: str) -> list[float | None]:
    """The composed score of each sample of a run, in their order."""
    chosen = composition.weights_for(quality)
    columns = []
    for term, weight in zip(composition.terms, chosen.weights, strict=True):
        if not weight:
            columns.append(np.zeros(len(run)))
            continue
        if term.spec not in run.metrics:
            raise UsageError(
                f"{run.directory} has no metric {term.spec!r}, which the composition needs. Score"
                f" it: dialeval score ... -m {term.spec}"
            )
        term.check_signature(run.signatures[term.spec])
        columns.append(term_column(metric_columns(run, term.spec), term))
    total = composed(np.column_stack(columns), chosen)
    return [None if np.isnan(value) else float(value) for value in total]


def scores_table(run: Run, label: str, scores: list[float | None]) -> str:
    """As CSV: id, score. A sample without a score has an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", label])
    ids = [ident for batch in run.batches(["id"]) for ident in batch.column(0).to_pylist()]
    for ident, score in zip(ids, scores, strict=True):
        writer.writerow([neutralise(ident), "" if score is None else repr(score)])
    return text.getvalue()
