"""Reading `manifest.json`: nothing of it is used before all of it was checked.

A manifest carries a digest of itself, so a damaged one is told from a good one at a glance. Its
schema is checked all the same: runs of older versions have no digest, and a manifest that somebody
edited must not end in a traceback three verbs later.
"""

from __future__ import annotations

import typing
from pathlib import Path, PurePosixPath
from typing import Any

from dialeval.engine.manifest import RUN_FORMAT, UNSEALED, file_damage, sealed
from dialeval.errors import DialevalError, InputError, UsageError
from dialeval.metric import Direction
from dialeval.scores import CalibrationKind, Signature
from dialeval.storage import SCORE_AGAIN
from dialeval.strict_json import Fields, read_object, shown

NAME = "manifest.json"
MISSING = "(missing)"
"""Stands for a field that may be null, and is not there."""

LARGEST = 1 << 30
"""Bytes. A manifest grows with the number of systems times metrics."""


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of a run, whole and undamaged."""
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
    """The schema: what later verbs take for granted."""

    def check(self, manifest: dict[str, Any]) -> None:
        for name, version in self.mapping(manifest.get("versions"), "versions").items():
            self.text(version, f"versions.{name}")
        self.data(self.mapping(manifest.get("data"), "data"))
        metrics = self.records(manifest.get("metrics"), "metrics")
        labels = [self.metric(one, f"metrics[{n}]") for n, one in enumerate(metrics)]
        for label in sorted({label for label in labels if label and labels.count(label) > 1}):
            self.wrong("metrics", f"{shown(label)} occurs twice")
        for number, one in enumerate(self.records(manifest.get("systems"), "systems")):
            self.system(one, f"systems[{number}]", labels)
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
