"""Correlation re-scaling: from correlations to weights (Zhang et al., MME-CRS, 2022).

    w_ijk = S_ijk^d / sum over k of S_ijk^d                                              (Eq. 1)
    w_jk  = mean over the data sets i that have the quality j of w_ijk                   (Eq. 2)

S_ijk is the Spearman correlation of sub-metric k with quality j on data set i, or 0 where it is
negative. The power d is 2 in the authors' best submission, or `adaptive`: the smallest of 1, 1.5,
2, ... with the largest weight between 1/3 and 1/2. (The paper writes max(S) there, which does not
depend on d; only max(w) can be meant.)

Where no sub-metric correlates positively Eq. 1 is 0/0, of which the paper says nothing: all weights
are then equal, and `Weighting.uniform` says so.

A composition as a value: which metrics, on which scales, with which weight for which quality.

A term is a sub-metric. Its raw value is put on a scale from 0 to 1: a metric that ranges from 0 to
1 by itself as it is, any other by a `Calibration` that was fitted with the weights; where a metric
combines scaled parts (`Metric.scales`), each part by its own, and the metric's `combine` follows.
Values beyond 0 and 1 are clipped, and lower-is-better metrics are inverted.

A term keeps the signature that it was fitted with. The weights hold for nothing else: scored by
another model, the same name is another metric.

A composition is kept as JSON, which is written whole and checked when it is read:

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

import hashlib
import json
import math
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dialeval.errors import DialevalError, UsageError, did_you_mean
from dialeval.metric import Direction, Metric
from dialeval.options import split_spec
from dialeval.registry import make_metric
from dialeval.scores import Calibration, CalibrationKind, PartValue, Signature
from dialeval.storage import write_json
from dialeval.strict_json import Fields, read_object, shown

Power = float | Literal["adaptive"]

LEAST, MOST = 1 / 3, 1 / 2
"""The adaptive rule keeps the largest weight between these."""

ADAPTIVE_POWERS = tuple(1 + step / 2 for step in range(19))
"""1 to 10. Beyond that only equal correlations keep the largest weight from rising to 1."""

Weights = tuple[float, ...]


@dataclass(frozen=True)
class Weighting:
    """The weights of one quality on one data set, in the order of the sub-metrics."""

    weights: Weights
    power: float
    uniform: bool = False
    """Nothing correlates positively, so all are equal."""


def reweigh(correlations: Sequence[float | None], power: Power = 2.0) -> Weighting:
    """Eq. 1. A correlation that is not defined (None) counts as 0, as a negative one does."""
    if not correlations:
        raise ValueError("no sub-metric to weigh")
    positive = [max(0.0, rho) if rho is not None else 0.0 for rho in correlations]
    chosen = adaptive_power(correlations) if power == "adaptive" else float(power)
    if not any(positive):
        return Weighting((1 / len(positive),) * len(positive), chosen, uniform=True)
    return Weighting(_shares(positive, chosen), chosen)


def adaptive_power(correlations: Sequence[float | None]) -> float:
    """Returns the smallest power with the largest weight in [1/3, 1/2]. Where none has it there
    (one sub-metric alone correlates, or four do equally) the one that comes nearest."""
    positive = [max(0.0, rho) if rho is not None else 0.0 for rho in correlations]
    if not any(positive):
        return ADAPTIVE_POWERS[0]

    def distance(power: float) -> float:
        largest = max(_shares(positive, power))
        return max(0.0, LEAST - largest, largest - MOST)

    return min(ADAPTIVE_POWERS, key=distance)


def mean_weights(of_sets: Sequence[Weights]) -> Weights:
    """Eq. 2: every data set counts the same."""
    if not of_sets:
        raise ValueError("no data set to average over")
    return tuple(math.fsum(column) / len(of_sets) for column in zip(*of_sets, strict=True))


def uniform_weights(count: int) -> Weights:
    """MME-Avg: all sub-metrics count the same."""
    return (1 / count,) * count


def _shares(positive: Sequence[float], power: float) -> Weights:
    """Divided by the largest first: a high power of a small number would vanish."""
    largest = max(positive)
    raised = [(rho / largest) ** power for rho in positive]
    total = math.fsum(raised)
    return tuple(value / total for value in raised)


OVERALL = ("overall", "Overall", "appropriateness")
"""Names of the quality that stands for all. The test sets of DSTC10 call it appropriateness, which
no development set does."""

COMPOSED = ("mme-crs", "mme-avg")
"""Metrics that read compositions. They are no terms of another: it could be their own."""

MEAN_OF_ALL = "mean of all qualities"
VALUE = ""
"""The key of a scale that is for the value itself and not for a part."""


@dataclass(frozen=True)
class Term:
    """One sub-metric.

    spec       how it is asked for: `mme-specificity:kind=nce`
    signature  what it was fitted with, in the short form, without a scale of its own
    scales     part -> scale, or VALUE -> scale; empty: it ranges from 0 to 1
    """

    spec: str
    signature: str
    direction: Direction = "higher"
    scales: Mapping[str, Calibration] = field(default_factory=dict)
    metric: Metric = field(init=False, repr=False, compare=False)
    """Made together with the term, so that files that it names are read then and not later."""

    def __post_init__(self) -> None:
        if split_spec(self.spec)[0] in COMPOSED:
            raise UsageError(f"{self.spec} is a composition itself")
        object.__setattr__(self, "metric", make_metric(self.spec))

    def scaled(self, value: float, parts: Mapping[str, PartValue]) -> float:
        """Maps what `Metric.score` gives to a number from 0 to 1; higher is better."""
        if VALUE in self.scales:
            value = self.scales[VALUE].apply(value)
        elif self.scales:
            value = self.metric.combine(
                {part: scale.apply(_number(parts[part])) for part, scale in self.scales.items()}
            )
        clipped = min(1.0, max(0.0, value))
        return 1.0 - clipped if self.direction == "lower" else clipped

    @property
    def scaling(self) -> tuple[object, ...]:
        """Returns everything that decides about the values of the term, as a key."""
        ends = ((part, one.kind, one.low, one.high) for part, one in self.scales.items())
        return (self.spec, self.direction, *sorted(ends))

    def check_signature(self, signature: Signature) -> None:
        """Refuses to weigh another metric than the one that the weights were fitted with."""
        now = term_signature(signature)
        if now != self.signature:
            raise UsageError(
                f"the weights were fitted with another {self.spec!r}: {difference(self, now)}."
                " Fit them again: dialeval compose fit RUN... -o FILE.json"
            )


@dataclass(frozen=True)
class Chosen:
    """The weights for a quality that was asked for, and whose they are."""

    quality: str
    weights: Weights


@dataclass(frozen=True)
class Composition:
    """Terms, and for each quality their weights, in the same order.

    names       what qualities of the data were called: Relevant -> relevance
    provenance  what it was fitted on, as JSON
    """

    terms: tuple[Term, ...]
    weights: Mapping[str, Weights]
    names: Mapping[str, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def specs(self) -> list[str]:
        return [term.spec for term in self.terms]

    def weights_for(self, quality: str) -> Chosen:
        """Returns the weights of a quality by its name, its name in the data, or its name in other
        case.

        Where there are none for overall by that name, those of its other names are taken, and where
        there are none either, the mean over all qualities. Another quality that is not known is an
        error.
        """
        for name in (quality, self.names.get(quality, "")):
            if name in self.weights:
                return Chosen(name, self.weights[name])
        if quality.lower() in OVERALL:
            return self.overall
        for name in _same_word(quality, self.weights):
            return Chosen(name, self.weights[name])
        known = [*self.weights, *(n for n, used in self.names.items() if used in self.weights)]
        raise UsageError(
            f"no weights for the quality {quality!r}.{did_you_mean(quality, known)} There are"
            f" weights for: {', '.join(self.weights)}. (compose fit --map common makes"
            " names one that mean the same.)"
        )

    @property
    def overall(self) -> Chosen:
        """Returns weights for unknown data: those of overall, else the mean over all qualities."""
        found = [name for name in OVERALL if name in self.weights]
        if found:
            return Chosen(" and ".join(found), mean_weights([self.weights[n] for n in found]))
        return Chosen(MEAN_OF_ALL, mean_weights(list(self.weights.values())))

    @property
    def average(self) -> Chosen:
        """All terms count the same (MME-Avg)."""
        return Chosen("none", uniform_weights(len(self.terms)))

    def digest(self) -> str:
        """Returns the digest of all that moves a score, in whatever file: terms, scales, weights,
        names."""
        record = self.to_record()
        moving = [record["terms"], record["weights"], record["names"]]
        text = json.dumps(moving, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def to_record(self) -> dict[str, Any]:
        return {
            "terms": [
                {
                    "metric": term.spec,
                    "signature": term.signature,
                    "direction": term.direction,
                    "scale": _scale_record(term.scales),
                }
                for term in self.terms
            ],
            "weights": {quality: list(weights) for quality, weights in self.weights.items()},
            "names": dict(self.names),
            "provenance": dict(self.provenance),
        }


def term_signature(signature: Signature) -> str:
    """Returns what decides a raw value: not the releases, and not a scale that was fitted on one
    run."""
    kept = tuple(item for item in signature.fields if item[0] != "calibration")
    return Signature(signature.name, signature.version, kept).short()


def difference(term: Term, now: str) -> str:
    """Returns what differs between a term's signature and another, field by field."""
    old, new = Signature.parse(term.signature), Signature.parse(now)
    before = {"metric": old.name, "version": str(old.version), **dict(old.fields)}
    after = {"metric": new.name, "version": str(new.version), **dict(new.fields)}
    changed = [
        f"{key} was {before.get(key, 'not there')} and is {after.get(key, 'not there')}"
        for key in dict.fromkeys([*before, *after])
        if before.get(key) != after.get(key)
    ]
    return "; ".join(changed) or f"{term.signature} instead of {now}"


def _same_word(quality: str, names: Mapping[str, object]) -> Sequence[str]:
    return [name for name in names if name.lower() == quality.lower()]


def _number(part: PartValue) -> float:
    if isinstance(part, tuple):
        raise UsageError("a part that is a list of numbers cannot be put on a scale")
    return part


def _scale_record(scales: Mapping[str, Calibration]) -> dict[str, Any] | None:
    if not scales:
        return None
    if VALUE in scales:
        return scales[VALUE].to_record()
    return {"parts": {part: scale.to_record() for part, scale in scales.items()}}


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
