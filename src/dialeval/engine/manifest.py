"""`manifest.json`: everything about a run but the scores themselves.

It holds no clock time and no machine name: the same data and metrics give the same bytes.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence, Set
from importlib.metadata import version
from typing import Any

from dialeval.engine.columns import scaled_columns
from dialeval.engine.summary import MetricSummary, Pools
from dialeval.metric import Metric
from dialeval.scores import Calibration
from dialeval.version import __version__

RUN_FORMAT = 1
"""Raised when an older dialeval could misread the directory."""


def build_manifest(
    metrics: Sequence[Metric],
    signatures: Mapping[str, str],
    data: Mapping[str, Any],
    counts: Mapping[str, Mapping[str, int]],
    summaries: Mapping[str, Mapping[str, MetricSummary]],
    calibrations: Mapping[str, Calibration],
    given: Set[str],
    pools: Pools,
) -> dict[str, Any]:
    """`counts` and `summaries` are per system, `signatures` per label, `calibrations` per column.

    `given` names the calibrations that came from another run.
    """
    return {
        "run_format": RUN_FORMAT,
        "versions": {
            "dialeval": __version__,
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "pyarrow": version("pyarrow"),
        },
        "data": {
            **data,
            "samples": sum(sum(levels.values()) for levels in counts.values()),
            "turns": sum(levels["turn"] for levels in counts.values()),
            "dialogues": sum(levels["dialogue"] for levels in counts.values()),
        },
        "metrics": [
            _metric_record(metric, signatures[metric.label], calibrations, given, summaries)
            for metric in metrics
        ],
        "systems": [
            {
                "name": system,
                "samples": sum(levels.values()),
                "turns": levels["turn"],
                "dialogues": levels["dialogue"],
                "scores": {
                    metric.label: summaries[system][metric.label].to_record(
                        pools.result(system, metric.label)
                    )
                    for metric in metrics
                },
            }
            for system, levels in counts.items()
        ],
    }


def _metric_record(
    metric: Metric,
    signature: str,
    calibrations: Mapping[str, Calibration],
    given: Set[str],
    summaries: Mapping[str, Mapping[str, MetricSummary]],
) -> dict[str, Any]:
    label = metric.label
    of_metric = [of_system[label] for of_system in summaries.values()]
    notes: dict[str, int] = {}
    for summary in of_metric:
        for note, count in summary.notes.items():
            notes[note] = notes.get(note, 0) + count
    scaled = {
        column: calibrations[column].to_record()
        for column in scaled_columns(metric)
        if column in calibrations
    }
    return {
        "label": label,
        "name": metric.name,
        "signature": signature,
        "options": metric.options(),
        "levels": sorted(metric.levels),
        "direction": metric.direction,
        "range": [_finite(bound) for bound in metric.range],
        "parts": [part.to_record() for part in metric.parts()],
        "citation": metric.citation,
        "calibration": _calibration_record(label, scaled),
        "calibration_given": not given.isdisjoint(scaled),
        "scored": sum(summary.mean.n for summary in of_metric),
        "missing": sum(summary.missing for summary in of_metric),
        "notes": dict(sorted(notes.items())),
    }


def _calibration_record(
    label: str, scaled: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """The scale of the value, or under `parts` those of what it is made of."""
    if not scaled or label in scaled:
        return scaled.get(label)
    parts = {column.removeprefix(f"{label}."): record for column, record in scaled.items()}
    return {"n": min(record["n"] for record in parts.values()), "parts": parts}


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None
