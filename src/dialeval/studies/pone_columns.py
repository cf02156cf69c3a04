"""Rated answers as the columns of PONE's tables, and what stands in their cells.

A column is a rated set, or the answers of one system; it has a main quality (overall) and may have
others. A cell holds two correlations in two ways: with the mean rating, and by the paper's rule,
the largest over the raters with the smallest p. Human(Avg) and Human(Max) are the mean and the
largest correlation of two raters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dialeval.agreement.coefficient import Coefficient, maximum_over_raters
from dialeval.agreement.correlation import correlations
from dialeval.agreement.rated import mean_rating, ratings_table
from dialeval.errors import UsageError
from dialeval.sample import Sample
from dialeval.studies.comparison import SHOWN, Correlations, people_among_each_other
from dialeval.studies.rated_runs import MAIN, LoadedSet

ASPECTS = ("fluency", "coherence", "engagement")
"""The qualities that the paper's raters judged beside the overall one."""


@dataclass(frozen=True)
class Column:
    """Rated answers. `samples` are those with a response and a rating of some quality."""

    name: str
    samples: tuple[Sample, ...]
    qualities: tuple[str, ...]
    main: str

    @property
    def is_multi_turn(self) -> bool:
        return any(len(sample.context) > 1 for sample in self.samples)

    def rated(self, quality: str) -> list[int]:
        """Returns the places of the samples with a rating of this quality."""
        return [
            place
            for place, sample in enumerate(self.samples)
            if quality in sample.ratings and sample.ratings[quality].mean is not None
        ]


@dataclass(frozen=True)
class Cell:
    """What a metric has to do with what people said: by the paper's rule, and with the mean."""

    largest: Correlations
    mean: Correlations


def columns_of(sets: Sequence[LoadedSet]) -> list[Column]:
    """Returns a column for each set."""
    return [_column(rated.name, rated.samples) for rated in sets]


def columns_by_system(samples: Sequence[Sample], where: str) -> list[Column]:
    """Returns a column for each system that gave answers."""
    by_system: dict[str, list[Sample]] = {}
    for sample in samples:
        by_system.setdefault(sample.system, []).append(sample)
    return [_column(name or where, found) for name, found in by_system.items()]


def _column(name: str, samples: Sequence[Sample]) -> Column:
    usable = [
        sample
        for sample in samples
        if sample.response is not None and any(r.mean is not None for r in sample.ratings.values())
    ]
    if not usable:
        raise UsageError(f"{name}: no answer has a rating, and PONE's tables are of rated answers")
    qualities = tuple(dict.fromkeys(quality for sample in usable for quality in sample.ratings))
    main = next((quality for quality in MAIN if quality in qualities), qualities[0])
    return Column(name, tuple(usable), qualities, main)


def aspects_of(column: Column) -> Iterator[str]:
    """Yields the qualities of Table 3: fluency, coherence, engagement, or all but the main one."""
    known = [quality for quality in column.qualities if quality.lower() in ASPECTS]
    rest = [quality for quality in column.qualities if quality != column.main]
    yield from (sorted(known, key=lambda one: ASPECTS.index(one.lower())) or rest)


def cell_of(scores: Sequence[float | None], column: Column, quality: str) -> Cell:
    """Returns the correlations of one score for each sample of the column."""
    places = column.rated(quality)
    ratings, raters = ratings_table([column.samples[place] for place in places], quality)
    own = [scores[place] for place in places]
    by_rater = {
        rater: correlations(own, ratings[:, number], names=SHOWN)
        for number, rater in enumerate(raters)
    }
    return Cell(
        {
            name: maximum_over_raters({rater: one[name] for rater, one in by_rater.items()})
            for name in SHOWN
        },
        correlations(own, mean_rating(ratings), names=SHOWN),
    )


def people_of(column: Column, quality: str) -> tuple[Correlations, Correlations]:
    """Returns Human(Avg) and Human(Max)."""
    places = column.rated(quality)
    ratings, _ = ratings_table([column.samples[place] for place in places], quality)
    return people_among_each_other(ratings)


def mean_over(found: Sequence[Correlations]) -> Mapping[str, float | None]:
    """Returns the mean over columns; an undefined correlation counts as 0, none at all as None."""
    means: dict[str, float | None] = {}
    for name in SHOWN:
        values = [one[name].value or 0.0 for one in found if not _is_absent(one[name])]
        means[name] = sum(values) / len(values) if values else None
    return means


def _is_absent(found: Coefficient) -> bool:
    """Nobody gave two numbers to compare: a metric that needs references where there are none."""
    return found.value is None and found.n == 0
