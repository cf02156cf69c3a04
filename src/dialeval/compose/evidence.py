"""The data that weights are fitted on: scores and ratings of the same samples, in one run or many.

`Evidence` holds the samples of one level of one run as columns. Turns and whole dialogues are never
compared with each other, so a run with both yields two. Texts stay on the disk; digests of them are
kept to find data sets that hold the same conversations.

`apply_composition` composes the columns of an existing run without asking any model; `scores_table`
makes a table of them that `dialeval agree FILE --scores` reads.

Some data sets hold the same conversations: FED is a data set of its own and two of DSTC10's; USR
and GRADE occur twice as well. Weights fitted on one would be tried on itself. `find_families`
compares the texts, whatever the files are called: sets that share a conversation are *relatives*
and are left out together. Sets of one level that share more than half of their samples are *the
same* and count once in a mean.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.agreement.arithmetic import Floats, Integers, without_rounding_errors
from dialeval.agreement.coefficient import Coefficient
from dialeval.agreement.correlation import spearman
from dialeval.agreement.dstc10 import protocol_rating
from dialeval.agreement.joining import run_names, texts_digest
from dialeval.errors import UsageError, did_you_mean
from dialeval.metrics.composition import COMPOSED, VALUE, Chosen, Composition, Term, term_signature
from dialeval.registry import make_metric
from dialeval.sample import Level, Sample
from dialeval.text import letters_and_digits, neutralise

if TYPE_CHECKING:
    from dialeval.runs.run import Run


LEVELS: Mapping[Level, str] = {"turn": "turns", "dialogue": "dialogues"}


@dataclass(frozen=True)
class MetricColumns:
    """One metric on all samples, NaN if it has no value.

    value  the value that the run reports; higher is better
    raw    the numbers to scale: VALUE -> the value before any scale of the run, or the parts
    """

    value: Floats
    raw: Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class Evidence:
    """A data set: the samples of one level of one run.

    name     under which tables show it
    digest   sha256 of the run's data
    metrics  label -> its columns
    ratings  quality -> mean rating of each sample, NaN where there is none
    texts    digests of the judged texts; for a whole dialogue, of each of its turns
    """

    name: str
    level: Level
    digest: str
    n: int
    metrics: Mapping[str, MetricColumns]
    ratings: Mapping[str, Floats]
    texts: frozenset[bytes]
    known: dict[tuple[Hashable, str], Coefficient] = field(default_factory=dict, repr=False)
    """Correlations that were computed before: leaving sets out asks for the same ones again."""

    def correlation(
        self,
        key: Hashable,
        column: Floats,
        quality: str,
        rows: Sequence[int] | slice = slice(None),
    ) -> Coefficient:
        """Spearman's rho of a column and the ratings of a quality, on some rows. `key` names the
        column and the rows."""
        if (key, quality) not in self.known:
            found = spearman(column[rows], self.ratings[quality][rows])
            self.known[key, quality] = found
        return self.known[key, quality]

    @property
    def rated(self) -> Integers:
        """Positions of the samples that somebody rated."""
        known = [~np.isnan(column) for column in self.ratings.values()]
        return np.flatnonzero(np.any(known, axis=0))

    def scaled(self, term: Term) -> Floats:
        """Returns the values of a term on its scale, from 0 to 1."""
        return term_column(self.metrics[term.spec], term)


def term_column(columns: MetricColumns, term: Term) -> Floats:
    """Returns the values of a metric on the scale of a term, NaN if it has no value: what
    `Term.scaled` returns for each sample."""
    scaled = {part: scale.apply_all(columns.raw[part]) for part, scale in term.scales.items()}
    if not scaled or VALUE in scaled:
        found = scaled.get(VALUE, columns.raw[VALUE])
    else:
        parts = [column.tolist() for column in scaled.values()]
        found = np.array(
            [
                term.metric.combine(dict(zip(scaled, row, strict=True)))
                for row in zip(*parts, strict=True)
            ],
            dtype=np.float64,
        )
    clipped = np.clip(found, 0.0, 1.0)
    clipped = 1.0 - clipped if term.direction == "lower" else clipped
    return np.where(np.isnan(columns.value), np.nan, clipped)


def read_evidence(run: Run, name: str = "") -> list[Evidence]:
    """Returns the levels of a run that people rated."""
    name = name or data_name(run)
    samples = list(run.samples())
    columns = {label: metric_columns(run, label) for label in run.metrics}
    found = []
    for level, word in LEVELS.items():
        places = [place for place, sample in enumerate(samples) if sample.level == level]
        own = [samples[place] for place in places]
        ratings = _ratings(name, own)
        if not ratings:
            continue
        both = len(places) < len(samples)
        found.append(
            Evidence(
                f"{name}, {word}" if both else name,
                level,
                str(run.manifest["data"]["sha256"]),
                len(places),
                {label: _rows(column, places) for label, column in columns.items()},
                ratings,
                frozenset(digest for sample in own for digest in text_digests(sample)),
            )
        )
    if not found:
        raise UsageError(
            f"{run.directory}: no sample has ratings. A run keeps those of the files that it"
            " scored: dialeval score FILE --rating COLUMN -o RUN"
        )
    return found


def data_name(run: Run) -> str:
    """Returns the name of the run's directory."""
    return run.directory.resolve().name


def check_metrics(runs: Sequence[Run], labels: Sequence[str]) -> None:
    """Raises an error unless every run has every metric with the same signature."""
    for label in labels:
        first: tuple[Path, str] | None = None
        for run in runs:
            if label not in run.metrics:
                raise UsageError(
                    f"{run.directory} has no metric {label!r}.{did_you_mean(label, run.metrics)}"
                    f" It has: {', '.join(run.metrics)}"
                )
            signature = term_signature(run.signatures[label])
            if first is None:
                first = (run.directory, signature)
            if signature != first[1]:
                raise UsageError(
                    f"{label!r} is not the same metric in all runs: {first[1]} in {first[0]}, but"
                    f" {signature} in {run.directory}. Score one of them again."
                )


def text_digests(sample: Sample) -> Iterator[bytes]:
    """Yields the digest of the conversation up to the answer; for a whole dialogue, up to each of
    its turns. Case, spaces and punctuation do not count: copies of a set differ in them."""
    said = [letters_and_digits(turn.text) for turn in sample.turns]
    if sample.response is not None:
        yield texts_digest(said)
        return
    for end in range(2, len(said) + 1):
        yield texts_digest(said[:end])


def metric_columns(run: Run, label: str) -> MetricColumns:
    """Returns one metric of a run."""
    record = next(metric for metric in run.manifest["metrics"] if metric["label"] == label)
    value = _read(run, label)
    sign = -1.0 if record["direction"] == "lower" else 1.0
    return MetricColumns(sign * value, {k: _read(run, c) for k, c in raw_columns(record).items()})


def raw_columns(record: Mapping[str, Any]) -> dict[str, str]:
    """Key of a scale -> the column of raw values, for a metric in a manifest."""
    label, calibration = record["label"], record["calibration"]
    if not calibration:
        return {VALUE: label}
    if "parts" in calibration:
        return {part: f"{label}.{part}" for part in calibration["parts"]}
    return {VALUE: f"{label}.raw"}


def _read(run: Run, column: str) -> Floats:
    values = [v for batch in run.batches([column]) for v in batch.column(0).to_pylist()]
    return np.array(values, dtype=np.float64)


def _rows(columns: MetricColumns, places: Sequence[int]) -> MetricColumns:
    return MetricColumns(
        columns.value[places], {key: column[places] for key, column in columns.raw.items()}
    )


def _ratings(name: str, samples: Sequence[Sample]) -> dict[str, Floats]:
    qualities = dict.fromkeys(quality for sample in samples for quality in sample.ratings)
    return {
        quality: without_rounding_errors(
            np.array(
                [
                    protocol_rating(name, sample.ratings[quality])
                    if quality in sample.ratings
                    else None
                    for sample in samples
                ],
                dtype=np.float64,
            )
        )
        for quality in qualities
    }


def composed(columns: Floats, chosen: Chosen) -> Floats:
    """Eq. 3 for all samples; NaN if a term with a weight has no value."""
    weights = np.array(chosen.weights)
    used = weights > 0
    total: Floats = columns[:, used] @ weights[used]
    return total


def apply_composition(composition: Composition, run: Run, quality: str) -> list[float | None]:
    """Returns the composed score of each sample of a run, in their order."""
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
    """Returns a CSV table of id and score. A sample without a score has an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", label])
    ids = [ident for batch in run.batches(["id"]) for ident in batch.column(0).to_pylist()]
    for ident, score in zip(ids, scores, strict=True):
        writer.writerow([neutralise(ident), "" if score is None else repr(score)])
    return text.getvalue()


@dataclass(frozen=True)
class Families:
    """Positions of data sets in groups: each set is in one of `same` and in one of `relatives`."""

    same: tuple[tuple[int, ...], ...]
    relatives: tuple[tuple[int, ...], ...]
    notes: tuple[str, ...]


def find_families(sets: Sequence[Evidence]) -> Families:
    notes = []
    for a, b in combinations(sets, 2):
        shared = len(a.texts & b.texts)
        if is_same(a, b):
            notes.append(
                f"{a.name} and {b.name} hold the same {a.level}s ({shared}): they count once, and"
                " are left out together"
            )
        elif are_relatives(a, b):
            notes.append(
                f"{a.name} and {b.name} share {shared} texts: they are left out together"
                if shared
                else f"{a.name} and {b.name} come from one run: they are left out together"
            )
    return Families(_groups(sets, is_same), _groups(sets, are_relatives), tuple(notes))


def is_same(a: Evidence, b: Evidence) -> bool:
    shared = len(a.texts & b.texts)
    return a.level == b.level and shared > min(len(a.texts), len(b.texts)) / 2


def are_relatives(a: Evidence, b: Evidence) -> bool:
    return a.digest == b.digest or bool(a.texts & b.texts)


def _groups(
    sets: Sequence[Evidence], joined: Callable[[Evidence, Evidence], bool]
) -> tuple[tuple[int, ...], ...]:
    """Groups of connected sets, in the order of their first member."""
    group = list(range(len(sets)))
    for (i, a), (j, b) in combinations(enumerate(sets), 2):
        if joined(a, b):
            low, high = sorted((group[i], group[j]))
            group = [low if g == high else g for g in group]
    return tuple(
        tuple(place for place, g in enumerate(group) if g == first)
        for first in dict.fromkeys(group)
    )


@dataclass(frozen=True)
class Ingredient:
    """A sub-metric before it has a scale."""

    spec: str
    signature: str


@dataclass(frozen=True)
class Gathered:
    """Rated runs: data sets, the sub-metrics to compose, and the other metrics."""

    sets: tuple[Evidence, ...]
    ingredients: tuple[Ingredient, ...]
    others: tuple[str, ...]
    families: Families
    left_out: tuple[str, ...] = ()
    """Sentences about data sets and metrics that could not be used: data sets without a score, such
    as dialogues if all metrics judge turns, and metrics that not all runs have."""


def gather(runs: Mapping[str, Run] | Sequence[Run], metrics: Sequence[str] = ()) -> Gathered:
    """Reads runs, by the name of their data or of their directory. `metrics` are those to compose;
    default: all that every run has and that have a better direction. A metric without a direction,
    such as length, is only composed if it is named."""
    named = (
        dict(runs) if isinstance(runs, Mapping) else dict(zip(run_names(runs), runs, strict=True))
    )
    if not named:
        raise UsageError(
            "no run to fit on. dialeval score RATED-FILE -m METRIC... -o RUN makes one"
        )
    opened = list(named.values())
    common = [label for label in opened[0].metrics if all(label in run.metrics for run in opened)]
    chosen = [make_metric(spec).label for spec in metrics]
    own = [label for label in common if label.partition(":")[0] not in COMPOSED]
    undirected = [] if metrics else [label for label in own if _direction(opened, label) is None]
    chosen = chosen or [label for label in own if label not in undirected]
    if undirected and not chosen:
        raise UsageError(
            f"the runs have no metric in common of which more or less is better, only"
            f" {', '.join(undirected)}. Score others, or name it to compose it all the same: -m"
            f" {undirected[0]}"
        )
    if not chosen:
        raise UsageError(
            "the runs have no metric in common. They have: "
            + "; ".join(f"{run.directory}: {', '.join(run.metrics)}" for run in opened)
        )
    if again := [label for label in chosen if label.partition(":")[0] in COMPOSED]:
        raise UsageError(f"{again[0]} is a composition itself, and no term of another")
    if twice := sorted({label for label in chosen if chosen.count(label) > 1}):
        raise UsageError(f"metric given twice: {', '.join(twice)}")
    check_metrics(opened, chosen)
    everything = [one for name, run in named.items() for one in read_evidence(run, name)]
    sets = tuple(one for one in everything if _has_values(one, chosen))
    if not sets:
        raise UsageError("the metrics have no value for any rated sample of the runs")
    signatures = opened[0].signatures
    return Gathered(
        sets,
        tuple(Ingredient(label, term_signature(signatures[label])) for label in chosen),
        tuple(label for label in common if label not in chosen and _is_same_in_all(label, opened)),
        find_families(sets),
        (
            *(() if metrics else _not_in_all(named)),
            *(
                f"{label}: neither more nor less of it is better, so that it does not measure"
                f" quality: left out. -m {label} composes it all the same"
                for label in undirected
            ),
            *(
                f"{one.name}: none of the metrics has a value there: left out"
                for one in everything
                if one not in sets
            ),
        ),
    )


def _direction(runs: Sequence[Run], label: str) -> str | None:
    """Returns the direction of a metric in the first run; None if it has none."""
    [record] = [one for one in runs[0].manifest["metrics"] if one["label"] == label]
    return None if record["direction"] == "neither" else str(record["direction"])


def _not_in_all(named: Mapping[str, Run]) -> list[str]:
    """Sentences about the metrics that only some of the runs have."""
    labels = dict.fromkeys(label for run in named.values() for label in run.metrics)
    lacking = {
        label: [name for name, run in named.items() if label not in run.metrics]
        for label in labels
        if label.partition(":")[0] not in COMPOSED
    }
    return [
        f"{label}: not in {', '.join(names)}, so that it cannot be composed: left out"
        for label, names in lacking.items()
        if names
    ]


def _is_same_in_all(label: str, runs: Sequence[Run]) -> bool:
    """Returns whether a metric can be compared with the composition on left-out data: it is the
    same in all runs, and is no composition, which may have been fitted on these data."""
    signatures = {term_signature(run.signatures[label]) for run in runs}
    return len(signatures) == 1 and label.partition(":")[0] not in COMPOSED


def _has_values(evidence: Evidence, labels: Sequence[str]) -> bool:
    return any(not np.isnan(evidence.metrics[label].value).all() for label in labels)
