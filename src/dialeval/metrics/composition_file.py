"""Compositions as JSON: written whole, read with suspicion.

    {"format": 1,
     "terms": [{"metric": "length", "signature": "length|v1|unit:words", "direction": "higher",
                "scale": {"kind": "quartile", "low": 4.0, "high": 12.0, "n": 1860}}],
     "weights": {"overall": [1.0]},
     "names": {"Overall": "overall"},
     "provenance": {...}}

Weights are numbers and names, nothing that could be run. All that is wrong with a file is told at
once, with the field.
"""

from __future__ import annotations

import math
import typing
from pathlib import Path
from typing import Any

from dialeval.errors import DialevalError, UsageError, did_you_mean
from dialeval.metric import Direction, Metric
from dialeval.metrics.composition import VALUE, Composition, Term
from dialeval.scores import Calibration, CalibrationKind, Signature
from dialeval.storage import write_json
from dialeval.strict_json import Fields, read_object, shown

FORMAT = 1
SHIPPED = Path(__file__).parent / "weights"


def save_composition(composition: Composition, path: Path) -> None:
    write_json(path, {"format": FORMAT, **composition.to_record()})


def find_composition(wanted: str) -> Composition:
    """Shipped weights by name, or a file."""
    return read_composition(composition_path(wanted))


def composition_path(wanted: str) -> Path:
    """A name without a folder and an ending is one of the shipped ones."""
    if Path(wanted).suffix or "/" in wanted or "\\" in wanted:
        return Path(wanted)
    path = SHIPPED / f"{wanted}.json"
    if not path.is_file():
        known = sorted(file.stem for file in SHIPPED.glob("*.json"))
        there = f" There are: {', '.join(known)}." if known else ""
        raise UsageError(
            f"no weights {wanted!r} come with this dialeval.{did_you_mean(wanted, known)}{there}"
            " Fit your own: dialeval compose fit RUN... -o crs.json, then -m"
            " mme-crs:weights=crs.json"
        )
    return path


def read_composition(path: Path) -> Composition:
    """Checks everything before anything is used."""
    if not path.is_file():
        raise UsageError(
            f"{path}: cannot read weights: there is no such file. Make them: dialeval compose fit"
            " RUN... -o FILE.json"
        )
    return _Reader(path).composition(read_object(path, "a composition"))


class _Reader(Fields):
    """The schema of a composition."""

    def composition(self, record: dict[str, Any]) -> Composition:
        if not {"format", "terms", "weights"} <= record.keys():
            raise UsageError(
                f"{self.path}: not a composition: it has no 'format', 'terms' and 'weights'."
                " dialeval compose fit writes one."
            )
        if record["format"] != FORMAT:
            raise UsageError(
                f"{self.path}: format: is {record['format']!r}; this dialeval reads {FORMAT}"
            )
        terms = self.terms(record["terms"])
        count = len(record["terms"]) if isinstance(record["terms"], list) else 0
        weights = self.weights(record["weights"], count)
        names = self.mapping(record.get("names", {}), "names")
        for name, joined in names.items():
            if not isinstance(joined, str):
                self.wrong(f"names.{name}", f"is {joined!r}, not a text")
        provenance = self.provenance(record.get("provenance", {}), count)
        self.known(record, {"format", "terms", "weights", "names", "provenance"})
        self.complain()
        return Composition(terms, weights, names, provenance)

    def terms(self, records: Any) -> tuple[Term, ...]:
        if not isinstance(records, list) or not records:
            self.wrong("terms", "must be a list of at least one term")
            return ()
        every = [self.term(one, f"terms[{number}]") for number, one in enumerate(records)]
        found = tuple(term for term in every if term is not None)
        specs = [term.spec for term in found]
        for spec in sorted({spec for spec in specs if specs.count(spec) > 1}):
            self.wrong("terms", f"{spec!r} occurs twice")
        return found

    def term(self, record: Any, field: str) -> Term | None:
        given = self.mapping(record, field)
        self.known(given, {"metric", "signature", "direction", "scale"}, field)
        spec = self.text(given.get("metric"), f"{field}.metric")
        signature = self.text(given.get("signature"), f"{field}.signature")
        try:
            if signature:
                Signature.parse(signature)
        except UsageError as error:
            self.wrong(f"{field}.signature", str(error))
        direction: Any = given.get("direction", "higher")
        if not isinstance(direction, str) or direction not in typing.get_args(Direction):
            self.wrong(f"{field}.direction", f"is {direction!r}, not higher, lower or neither")
            direction = "higher"
        scales = self.scales(given.get("scale"), f"{field}.scale")
        try:
            term = Term(spec, signature, direction, scales) if spec else None
        except DialevalError as error:
            self.wrong(f"{field}.metric", str(error))
            return None
        if term:
            self.check_metric(term.metric, spec, scales, field)
        return term

    def check_metric(
        self, metric: Metric, spec: str, scales: dict[str, Calibration], field: str
    ) -> None:
        """It is named as runs name it, and it has the parts that are scaled."""
        if metric.label != spec:
            self.wrong(f"{field}.metric", f"{spec!r} is written {metric.label!r}")
        wanted = set(metric.scales()) or {VALUE}
        if (scales and set(scales) != wanted) or (metric.scales() and not scales):
            named = ", ".join(sorted(wanted - {VALUE})) or "its value"
            self.wrong(f"{field}.scale", f"{spec} has a scale for {named}, and no other")

    def scales(self, record: Any, field: str) -> dict[str, Calibration]:
        if record is None:
            return {}
        given = self.mapping(record, field)
        if "parts" not in given:
            return {VALUE: self.scale(given, field)}
        parts = self.mapping(given["parts"], f"{field}.parts")
        return {part: self.scale(one, f"{field}.parts.{part}") for part, one in parts.items()}

    def scale(self, record: Any, field: str) -> Calibration:
        given = self.mapping(record, field)
        kind: Any = given.get("kind")
        if not isinstance(kind, str) or kind not in typing.get_args(CalibrationKind):
            known = ", ".join(typing.get_args(CalibrationKind))
            self.wrong(f"{field}.kind", f"is {shown(kind)}; known are {known}")
        low = self.number(given.get("low"), f"{field}.low")
        high = self.number(given.get("high"), f"{field}.high")
        n = self.number(given.get("n"), f"{field}.n")
        if low > high:
            self.wrong(field, f"low is {low:g}, which is more than high, {high:g}")
        return Calibration(kind, low, high, int(n))

    def weights(self, record: Any, terms: int) -> dict[str, tuple[float, ...]]:
        given = self.mapping(record, "weights")
        if not given:
            self.wrong("weights", "must hold weights for at least one quality")
        found = {}
        for quality, values in given.items():
            field = f"weights.{quality}"
            if not isinstance(values, list) or len(values) != terms:
                self.wrong(field, f"must be a list of {terms} numbers, one for each term")
                continue
            numbers = [self.number(value, f"{field}[{n}]") for n, value in enumerate(values)]
            if any(number < 0 for number in numbers):
                self.wrong(field, "a weight is negative")
            elif abs(math.fsum(numbers) - 1) > 1e-6:
                self.wrong(field, f"the weights sum to {math.fsum(numbers):g}, not to 1")
            found[quality] = tuple(numbers)
        return found

    def provenance(self, record: Any, terms: int) -> dict[str, Any]:
        """Weights by hand have none; what there is can be shown."""
        given = self.mapping(record, "provenance")
        for number, note in enumerate(self.records(given.get("notes", []), "provenance.notes")):
            self.text(note, f"provenance.notes[{number}]")
        for number, one in enumerate(self.records(given.get("sets", []), "provenance.sets")):
            self.data_set(one, f"provenance.sets[{number}]", terms)
        if given.get("sets"):
            self.number(given.get("sample"), "provenance.sample")
        return given

    def data_set(self, record: Any, field: str, terms: int) -> None:
        given = self.mapping(record, field)
        self.text(given.get("name"), f"{field}.name")
        self.text(given.get("counts as"), f"{field}.counts as")
        self.number(given.get("samples"), f"{field}.samples")
        for number, one in enumerate(self.records(given.get("fitted"), f"{field}.fitted")):
            self.fitted(one, f"{field}.fitted[{number}]", terms)

    def fitted(self, record: Any, field: str, terms: int) -> None:
        given = self.mapping(record, field)
        self.text(given.get("quality"), f"{field}.quality")
        self.number(given.get("n"), f"{field}.n")
        self.number(given.get("power"), f"{field}.power")
        correlations = self.records(given.get("correlations"), f"{field}.correlations")
        if len(correlations) != terms:
            self.wrong(f"{field}.correlations", f"must be a list of {terms}, one for each term")
        for number, rho in enumerate(correlations):
            if rho is not None:
                self.number(rho, f"{field}.correlations[{number}]")
