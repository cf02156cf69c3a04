"""`manifest.json`: everything about a run but the scores themselves.

It holds no clock time and no machine name: the same data and metrics give the same bytes.

It names the size and the sha256 of the files with the scores, and its own digest. (`job.json` has a
digest, too; no number comes from the history.) Every verb that opens a run compares them: the
manifest and files of up to 32 MB as a whole; of larger files the size and the footer, while each
page has a checksum that is compared when it is read. `dialeval doctor RUN` reads everything.

Nothing in a manifest is used before all of it was checked. The digest finds damage at once; the
schema is checked all the same, because runs of older versions have no digest, and a manifest that
somebody edited must not end in a traceback three verbs later.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import typing
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

from dialeval.errors import DialevalError, InputError, UsageError
from dialeval.metric import Direction, Metric
from dialeval.runs.directory import scaled_columns
from dialeval.runs.table import MetricSummary, PoolResults
from dialeval.scores import Calibration, CalibrationKind, Signature
from dialeval.storage import SCORE_AGAIN, file_stamp, record_digest, sha256_of
from dialeval.strict_json import Fields, read_object, shown
from dialeval.version import __version__

RUN_FORMAT = 2
"""Incremented when an older dialeval could misread the directory."""

ENGINES = ("local", "ray")
"""The engines that may have written a run; a run of an older dialeval names none."""

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
    pools: PoolResults,
    files: Mapping[str, Mapping[str, Any]],
    engine: str = "local",
) -> dict[str, Any]:
    """`counts` and `summaries` are per system, `signatures` per label, `calibrations` per column.

    `given` names the calibrations that came from another run.
    """
    return sealed(
        {
            "run_format": RUN_FORMAT,
            "engine": engine,
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
    """Returns the manifest with the digest of everything else in it."""
    rest = {name: value for name, value in manifest.items() if name != "sha256"}
    return {**rest, "sha256": record_digest(rest)}


def file_records(directory: Path, paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Returns size, sha256 and, for Parquet files, sha256 of the footer, by name."""
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
    """Returns what is wrong with the files of a run; empty if nothing is. `whole`: read every
    byte."""
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
    """Keeps digests, because a server opens the same runs again and again."""
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
    """Returns the scale of the value, or under `parts` those of what it is made of."""
    if not scaled or label in scaled:
        return scaled.get(label)
    parts = {column.removeprefix(f"{label}."): record for column, record in scaled.items()}
    return {"n": min(record["n"] for record in parts.values()), "parts": parts}


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


NAME = "manifest.json"
MISSING = "(missing)"
"""Stands for a field that may be null, and is not there."""

LARGEST = 1 << 30
"""Bytes. A manifest grows with the number of systems times metrics."""


def read_manifest(directory: Path) -> dict[str, Any]:
    """Reads the manifest of a run, whole and undamaged."""
    path = directory / NAME
    try:
        manifest = read_object(path, "the manifest of a run", LARGEST)
    except InputError as error:
        raise UsageError(f"{error}. {SCORE_AGAIN}") from error
    run_format = manifest.get("run_format")
    known = (UNSEALED, RUN_FORMAT)
    if not isinstance(run_format, int) or isinstance(run_format, bool) or run_format not in known:
        raise UsageError(
            f"{path}: run_format: is {shown(run_format)}; this dialeval reads format {RUN_FORMAT}."
            " Score again, or use the dialeval version named in its manifest."
        )
    has_seal = run_format != UNSEALED or "sha256" in manifest
    if has_seal and sealed(manifest)["sha256"] != manifest.get("sha256"):
        raise UsageError(f"{path} has changed since it was written. {SCORE_AGAIN}")
    schema = _Manifest(path)
    schema.check(manifest)
    try:
        schema.complain()
    except InputError as error:
        raise UsageError(f"{error}\n{SCORE_AGAIN}") from error
    return manifest


def check_files(directory: Path, manifest: dict[str, Any], *, whole: bool = False) -> None:
    """Compares the other files of a run with what its manifest says of them."""
    if problem := file_damage(directory, manifest.get("files", {}), whole=whole):
        raise UsageError(f"{problem}. {SCORE_AGAIN}")


class _Manifest(Fields):
    """The schema: the fields that later verbs rely on."""

    def check(self, manifest: dict[str, Any]) -> None:
        self.choice(manifest.get("engine", "local"), "engine", ENGINES)
        for name, number in self.mapping(manifest.get("versions"), "versions").items():
            self.text(number, f"versions.{name}")
        self.data(self.mapping(manifest.get("data"), "data"))
        metrics = self.records(manifest.get("metrics"), "metrics")
        labels = [self.metric(one, f"metrics[{n}]") for n, one in enumerate(metrics)]
        for label in sorted({label for label in labels if label and labels.count(label) > 1}):
            self.wrong("metrics", f"{shown(label)} occurs twice")
        for number, one in enumerate(self.records(manifest.get("systems"), "systems")):
            self.system(one, f"systems[{number}]", labels)
        for number, one in enumerate(self.records(manifest.get("added", []), "added")):
            self.texts(self.mapping(one, f"added[{number}]").get("metrics"), f"added[{number}]")
        if manifest["run_format"] != UNSEALED or "files" in manifest:
            self.files(self.mapping(manifest.get("files"), "files"))

    def data(self, data: dict[str, Any]) -> None:
        self.text(data.get("sha256"), "data.sha256")
        for name in ("samples", "turns", "dialogues"):
            self.count(data.get(name), f"data.{name}")
        for name in ("skipped", "warnings"):
            self.count(data.get(name, 0), f"data.{name}")
        for number, source in enumerate(self.records(data.get("sources", []), "data.sources")):
            field = f"data.sources[{number}]"
            self.text(self.mapping(source, field).get("path"), f"{field}.path", empty=True)

    def metric(self, record: Any, field: str) -> str:
        given = self.mapping(record, field)
        label = self.text(given.get("label"), f"{field}.label")
        self.text(given.get("name"), f"{field}.name")
        try:
            Signature.parse(self.text(given.get("signature"), f"{field}.signature"))
        except DialevalError as error:
            self.wrong(f"{field}.signature", str(error))
        self.mapping(given.get("options"), f"{field}.options")
        self.texts(given.get("levels"), f"{field}.levels")
        self.choice(given.get("direction"), f"{field}.direction", typing.get_args(Direction))
        bounds = self.records(given.get("range"), f"{field}.range")
        if len(bounds) != 2:
            self.wrong(f"{field}.range", "must be a list of two numbers")
        for number, bound in enumerate(bounds):
            self.number_or_none(bound, f"{field}.range[{number}]")
        for number, part in enumerate(self.records(given.get("parts"), f"{field}.parts")):
            self.part(part, f"{field}.parts[{number}]")
        self.text(given.get("citation"), f"{field}.citation", empty=True)
        self.calibration(given.get("calibration", MISSING), f"{field}.calibration")
        self.truth(given.get("calibration_given"), f"{field}.calibration_given")
        self.count(given.get("scored"), f"{field}.scored")
        self.count(given.get("missing"), f"{field}.missing")
        self.counts(given.get("notes"), f"{field}.notes")
        return label

    def part(self, record: Any, field: str) -> None:
        given = self.mapping(record, field)
        self.text(given.get("name"), f"{field}.name")
        self.text(given.get("summary"), f"{field}.summary", empty=True)
        self.truth(given.get("many"), f"{field}.many")
        self.number(given.get("weight", 0), f"{field}.weight")
        self.truth(given.get("in_table", True), f"{field}.in_table")

    def calibration(self, record: Any, field: str) -> None:
        """None, a scale, or under `parts` several scales."""
        if record is None:
            return
        given = self.mapping(record, field)
        self.count(given.get("n"), f"{field}.n")
        if "parts" not in given:
            self.scale(given, field)
            return
        for name, scale in self.mapping(given["parts"], f"{field}.parts").items():
            self.scale(self.mapping(scale, f"{field}.parts.{name}"), f"{field}.parts.{name}")

    def scale(self, given: dict[str, Any], field: str) -> None:
        self.choice(given.get("kind"), f"{field}.kind", typing.get_args(CalibrationKind))
        self.number(given.get("low"), f"{field}.low")
        self.number(given.get("high"), f"{field}.high")
        self.text(given.get("identity", ""), f"{field}.identity", empty=True)
        self.count(given.get("n"), f"{field}.n")

    def system(self, record: Any, field: str, labels: list[str]) -> None:
        given = self.mapping(record, field)
        self.text(given.get("name"), f"{field}.name", empty=True)
        for name in ("samples", "turns", "dialogues"):
            self.count(given.get(name), f"{field}.{name}")
        scores = self.mapping(given.get("scores"), f"{field}.scores")
        for label in labels:
            self.summary(scores.get(label), f"{field}.scores.{label}")

    def summary(self, record: Any, field: str) -> None:
        given = self.mapping(record, field)
        self.count(given.get("n"), f"{field}.n")
        self.count(given.get("missing"), f"{field}.missing")
        self.number_or_none(given.get("mean", MISSING), f"{field}.mean")
        self.numbers(given.get("parts"), f"{field}.parts")
        self.counts(given.get("notes"), f"{field}.notes")
        if "pooled" in given:
            pooled = self.mapping(given["pooled"], f"{field}.pooled")
            self.number_or_none(pooled.get("value", MISSING), f"{field}.pooled.value")
            self.numbers(pooled.get("parts"), f"{field}.pooled.parts")
            self.text(pooled.get("note"), f"{field}.pooled.note", empty=True)

    def numbers(self, value: Any, field: str) -> None:
        for name, one in self.mapping(value, field).items():
            self.number_or_none(one, f"{field}.{name}")

    def counts(self, value: Any, field: str) -> None:
        for name, one in self.mapping(value, field).items():
            self.count(one, f"{field}.{name}")

    def files(self, files: dict[str, Any]) -> None:
        if not any(name.startswith("scores.parquet") for name in files):
            self.wrong("files", "does not name scores.parquet")
        for name, record in files.items():
            given = self.mapping(record, f"files.{name}")
            place = PurePosixPath(name)
            if place.is_absolute() or ".." in place.parts or "\0" in name:
                self.wrong(f"files.{name}", "is no file of this run")
            self.count(given.get("size"), f"files.{name}.size")
            self.text(given.get("sha256"), f"files.{name}.sha256")
            if name.endswith(".parquet"):
                self.text(given.get("footer"), f"files.{name}.footer")
