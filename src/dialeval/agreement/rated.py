"""Scores and ratings of the same samples, as columns.

Only what agreement needs is kept: the samples of a run are read without their texts, and the mean
over the raters is taken while reading. `RatedLevel` holds the samples of one level, because a turn
and a whole dialogue are never compared with each other.

If several people rated an item, there are three targets that a metric can be compared with:

    mean               the mean of those who rated the item             (HolisticEval, FED, USR)
    rater:NAME         the ratings of one rater
    max-over-raters    the largest correlation with any rater           (PONE's released code)

A table of ratings has a row for each item and a column for each rater, NaN where the rater did not
rate the item.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dialeval.agreement.arithmetic import Floats, Integers, without_rounding_errors
from dialeval.agreement.sources import Scores
from dialeval.errors import UsageError, did_you_mean
from dialeval.sample import Rating
from dialeval.storage import ratings_of_row

if TYPE_CHECKING:
    from dialeval.metric import Direction
    from dialeval.runs.run import Run
    from dialeval.sample import Level, Sample

TargetKind = Literal["mean", "rater", "max-over-raters"]


@dataclass(frozen=True)
class Target:
    """The ratings to compare metrics with; `rater` is the name or number (from 1) of one rater."""

    kind: TargetKind = "mean"
    rater: str = ""

    def __str__(self) -> str:
        return f"rater:{self.rater}" if self.kind == "rater" else self.kind

    @classmethod
    def parse(cls, text: str) -> Target:
        """`mean`, `max-over-raters`, `rater:NAME` or `rater:NUMBER`."""
        if text == "mean":
            return cls("mean")
        if text == "max-over-raters":
            return cls("max-over-raters")
        kind, _, rater = text.partition(":")
        if kind == "rater" and rater:
            return cls("rater", rater)
        raise UsageError(
            f"no target {text!r}: it is mean, max-over-raters, or rater:NAME (or rater:2 for the"
            " second rater)"
        )


def mean_rating(ratings: Floats) -> Floats:
    """Returns the mean over the raters who answered, for each item; NaN if nobody did."""
    given = (~np.isnan(ratings)).sum(axis=1)
    sums = np.nansum(np.sort(ratings, axis=1), axis=1)
    means: Floats = np.divide(sums, given, out=np.full(len(sums), np.nan), where=given > 0)
    return without_rounding_errors(means)


@dataclass(frozen=True)
class RatedQuality:
    """The samples of a level that people rated, and their ratings."""

    places: Integers
    """Positions of the rated samples in the columns of the level."""
    ratings: Floats
    """Rated samples x targets: one column for the mean or one rater, else one for each rater."""
    raters: tuple[str, ...]
    """Names of the columns."""


@dataclass(frozen=True)
class RatedLevel:
    """All samples of one level of one data set, as columns."""

    dataset: str
    level: Level
    target: Target
    systems: tuple[str, ...]
    items: tuple[str, ...]
    dialogues: tuple[str, ...]
    """The dialogue that each sample was cut from; empty if unknown."""
    scores: Mapping[str, Floats]
    """Metric -> a number for each sample, NaN if it has none. Metrics that only scored samples of
    other levels are left out."""
    directions: Mapping[str, Direction]
    qualities: Mapping[str, RatedQuality]


def rated_run(run: Run, target: Target, qualities: Sequence[str] = ()) -> list[RatedLevel]:
    """Returns the rated samples and the scores of a run, without the texts."""
    scores = {label: np.array(run.scores(label), dtype=np.float64) for label in run.metrics}
    directions: dict[str, Direction] = {
        metric["label"]: metric["direction"] for metric in run.manifest["metrics"]
    }
    name = str(run.directory)
    return _collect(name, rated_rows(run), scores, directions, target, qualities)


def rated_samples(
    samples: Iterable[Sample],
    scores: Scores,
    target: Target,
    qualities: Sequence[str] = (),
    *,
    dataset: str = "",
    directions: Mapping[str, Direction] | None = None,
) -> list[RatedLevel]:
    """Returns samples with ratings, and scores that are joined to them by id; without any, the
    ratings alone. Higher is better, unless `directions` say otherwise."""
    for name in directions or {}:
        if name not in scores:
            raise UsageError(f"no scores of {name!r}.{did_you_mean(name, scores)}")
    ids: list[str] = []

    def rows() -> Iterator[RatedRow]:
        for sample in samples:
            ids.append(sample.id)
            yield RatedRow(
                sample.system, sample.item, sample.dialogue, sample.level, sample.ratings
            )

    levels = list(rows())
    columns = {
        metric: np.array([of_metric.get(i) for i in ids], dtype=np.float64)
        for metric, of_metric in scores.items()
    }
    joined = any(ident in of_metric for of_metric in scores.values() for ident in ids)
    if ids and scores and not joined:
        raise UsageError(
            f"{dataset or 'the data'}: no sample has one of the ids of the scores. The first is"
            f" {ids[0]!r} here and {next(iter(next(iter(scores.values()))), '')!r} there."
        )
    higher: dict[str, Direction] = dict.fromkeys(scores, "higher")
    return _collect(dataset, levels, columns, higher | dict(directions or {}), target, qualities)


def ratings_table(samples: Iterable[Sample | RatedRow], quality: str) -> tuple[Floats, list[str]]:
    """Returns the table of ratings of one quality, and the names of the raters."""
    return _table([s.ratings[quality] for s in samples if quality in s.ratings])


@dataclass(frozen=True, slots=True)
class RatedRow:
    """The parts of a sample that agreement needs: all but its texts."""

    system: str
    item: str
    dialogue: str
    level: Level
    ratings: Mapping[str, Rating]


def rated_rows(run: Run) -> Iterator[RatedRow]:
    """Yields all samples of a run, without their texts."""
    for batch in run.batches(["system", "item", "dialogue", "response", "ratings"]):
        columns: tuple[list[Any], ...] = (
            batch.column("system").to_pylist(),
            batch.column("item").to_pylist(),
            batch.column("dialogue").to_pylist(),
            batch.column("response").is_null().to_pylist(),
            batch.column("ratings").to_pylist(),
        )
        for system, item, dialogue, no_response, ratings in zip(*columns, strict=True):
            yield RatedRow(
                sys.intern(system),
                sys.intern(item),
                sys.intern(dialogue or ""),
                "dialogue" if no_response else "turn",
                ratings_of_row(ratings),
            )


@dataclass
class _Level:
    """A level while its samples are read; `sources` are their positions in the data set."""

    sources: array[int] = field(default_factory=lambda: array("q"))
    systems: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    dialogues: list[str] = field(default_factory=list)
    places: dict[str, array[int]] = field(default_factory=dict)
    means: dict[str, array[float]] = field(default_factory=dict)
    ratings: dict[str, list[Rating]] = field(default_factory=dict)

    def add(self, source: int, row: RatedRow, target: Target, qualities: Sequence[str]) -> None:
        for quality, rating in row.ratings.items():
            if qualities and quality not in qualities:
                continue
            self.places.setdefault(quality, array("q")).append(len(self.sources))
            if target.kind == "mean":
                mean = rating.mean
                means = self.means.setdefault(quality, array("d"))
                means.append(np.nan if mean is None else mean)
            else:
                self.ratings.setdefault(quality, []).append(rating)
        self.sources.append(source)
        self.systems.append(row.system)
        self.items.append(row.item)
        self.dialogues.append(row.dialogue)


def _collect(
    dataset: str,
    rows: Iterable[RatedRow],
    scores: Mapping[str, Floats],
    directions: Mapping[str, Direction],
    target: Target,
    qualities: Sequence[str],
) -> list[RatedLevel]:
    levels: dict[Level, _Level] = {}
    known: dict[str, None] = {}
    for source, row in enumerate(rows):
        known.update(dict.fromkeys(row.ratings))
        levels.setdefault(row.level, _Level()).add(source, row, target, qualities)
    check_qualities(dataset, known, qualities)
    return [
        RatedLevel(
            dataset,
            level,
            target,
            tuple(found.systems),
            tuple(found.items),
            tuple(found.dialogues),
            _scores_of(np.asarray(found.sources), scores),
            directions,
            {quality: _quality(found, quality, target) for quality in found.places},
        )
        for level, found in levels.items()
    ]


def _scores_of(sources: Integers, scores: Mapping[str, Floats]) -> dict[str, Floats]:
    """Leaves out the metrics of other levels, but keeps a metric that scored nothing at all."""
    return {
        name: column[sources]
        for name, column in scores.items()
        if np.isnan(column).all() or not np.isnan(column[sources]).all()
    }


def check_qualities(dataset: str, known: Iterable[str], wanted: Sequence[str]) -> None:
    """Raises an error if a wanted quality is not rated."""
    here, known = dataset or "the data", list(known)
    if wanted and not known:
        raise UsageError(f"{here}: no sample has ratings")
    for quality in wanted:
        if quality not in known:
            raise UsageError(
                f"{here}: no sample has ratings of {quality!r}.{did_you_mean(quality, known)}"
                f" Rated are: {', '.join(known)}"
            )


def _quality(found: _Level, quality: str, target: Target) -> RatedQuality:
    places = np.asarray(found.places[quality], dtype=np.int64)
    if target.kind == "mean":
        means = without_rounding_errors(np.asarray(found.means[quality]))
        return RatedQuality(places, means[:, np.newaxis], ("mean",))
    table, raters = _table(found.ratings[quality])
    if target.kind == "max-over-raters":
        return RatedQuality(places, table, tuple(raters))
    chosen = _rater(target.rater, raters, quality)
    return RatedQuality(places, table[:, [chosen]], (raters[chosen],))


def _rater(wanted: str, raters: Sequence[str], quality: str) -> int:
    if wanted in raters:
        return raters.index(wanted)
    if wanted.isdecimal() and 1 <= int(wanted) <= len(raters):
        return int(wanted) - 1
    shown = ", ".join(raters[:10]) + (", ..." if len(raters) > 10 else "")
    raise UsageError(
        f"no rater {wanted!r} rated {quality!r}.{did_you_mean(wanted, raters)}"
        f" Its {len(raters)} raters are: {shown}"
    )


def _table(ratings: Sequence[Rating]) -> tuple[Floats, list[str]]:
    """Raters are identified by name if the data has names, else by position."""
    return ratings_matrix(
        [
            zip(
                one.raters or [f"rater{i + 1}" for i in range(len(one.values))],
                one.values,
                strict=False,
            )
            for one in ratings
        ]
    )


def ratings_matrix(
    items: Sequence[Iterable[tuple[str, float | None]]], raters: Iterable[str] = ()
) -> tuple[Floats, list[str]]:
    """Returns the table of ratings from (rater, rating) pairs of each item; `raters` come first."""
    numbers = {name: column for column, name in enumerate(raters)}
    cells: list[tuple[int, int, float]] = []
    for row, given in enumerate(items):
        for name, value in given:
            column = numbers.setdefault(name, len(numbers))
            if value is not None:
                cells.append((row, column, value))
    table = np.full((len(items), len(numbers)), np.nan)
    for row, column, value in cells:
        table[row, column] = value
    return table, list(numbers)
