"""`manifest.json`: everything about a run but the scores themselves.

It holds no clock time and no machine name: the same data and metrics give the same bytes.

It names the size and the sha256 of the files with the scores, and its own digest. (`job.json` has
one, too, and no number comes from the history.) Every verb that opens a run compares them: the
manifest, and files of up to 32 MB, as a whole; of larger ones the size and the footer, while each
page has a checksum that is compared when it is read. `dialeval doctor RUN` reads everything.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dialeval.engine.columns import scaled_columns
from dialeval.engine.summary import MetricSummary, Pools
from dialeval.metric import Metric
from dialeval.scores import Calibration
from dialeval.storage import file_stamp, record_digest, sha256_of
from dialeval.version import __version__

RUN_FORMAT = 2
"""Raised when an older dialeval could misread the directory."""

UNSEALED = 1
"""The format of runs without digests. They are read, and nothing in them can be compared."""

READ_WHOLE = 1 << 25
"""Bytes of a file that is read as a whole whenever its run is opened: some thirty milliseconds."""


def build_manifest(
    metrics: Sequence[Metric],
    signatures: Mapping[str, str],
    data: Mapping[str, Any],
    counts: Mapping[str, Mapping[str, int]],
    summaries: Mapping[str, Mapping[str, MetricSummary]],
    calibrations: Mapping[str, Calibration],
    given: Set[str],
    pools: Pools,
    files: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """`counts` and `summaries` are per system, `signatures` per label, `calibrations` per column.

    `given` names the calibrations that came from another run.
    """
    return sealed(
        {
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
            "files": files,
        }
    )


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """With the digest of everything else in it."""
    rest = {name: value for name, value in manifest.items() if name != "sha256"}
    return {**rest, "sha256": record_digest(rest)}


def file_records(directory: Path, paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Name -> size, sha256 and, of Parquet files, sha256 of the footer."""
    return {path.relative_to(directory).as_posix(): _file_record(path) for path in paths}


def _file_record(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = {"size": path.stat().st_size, "sha256": sha256_of(path)}
    return record | ({"footer": _footer(path)} if path.suffix == ".parquet" else {})


def _footer(path: Path) -> str:
    """sha256 of the end of a Parquet file: columns, types, row groups and where their pages lie."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 8))
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(0, size - 8 - length))
        return hashlib.sha256(file.read()).hexdigest()


def file_damage(directory: Path, files: Mapping[str, Any], *, whole: bool = False) -> str:
    """What is wrong with the files of a run; empty if nothing is. `whole`: read every byte."""
    for name, expected in files.items():
        path = directory / name
        try:
            size, *stamp = file_stamp(path)
            if size != expected["size"]:
                return f"{path} has {size:,} bytes and should have {expected['size']:,}"
            if whole:
                same = sha256_of(path) == expected["sha256"]
            elif size <= READ_WHOLE or "footer" not in expected:
                same = _known_digest(path, size, *stamp) == expected["sha256"]
            else:
                same = _footer(path) == expected["footer"]
        except FileNotFoundError:
            return f"{path} is missing"
        except OSError as error:
            return f"{path} cannot be read: {error.strerror}"
        if not same:
            return f"{path} has changed since it was written"
    return ""


@lru_cache(maxsize=4096)
def _known_digest(path: Path, *stamp: int) -> str:
    """A server opens the same runs again and again."""
    return sha256_of(path)


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
