"""`dialeval data check`: read everything, say what is there and what is wrong with it.

report = check(["fed_data.json"])
report.samples, report.qualities["Overall"].ratings, report.problems
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dialeval.errors import Problem
from dialeval.limits import USUAL, Limits
from dialeval.readers.detect import open_sources
from dialeval.readers.load import Samples, read_options
from dialeval.readers.source import PathLike
from dialeval.sample import Level, Rating

REPORT_EVERY = 1000
ALL_PROBLEMS = 1_000_000
"""A check lists all problems; beyond this many, memory comes first."""


@dataclass(frozen=True)
class QualityCheck:
    """What people said about one quality, over all samples.

    samples  how many samples were asked about it
    ratings  numbers given
    dropped  answers that are missing or no numbers
    low, high  the lowest and highest number given; None where there is none
    scale    the lowest and highest that could be given; None where unknown
    """

    samples: int
    ratings: int
    dropped: int
    low: float | None
    high: float | None
    scale: tuple[float, float] | None


@dataclass(frozen=True)
class CheckReport:
    """What a set of files holds. `problems` lists all errors and warnings."""

    files: tuple[str, ...]
    formats: Mapping[str, str]
    samples: int
    levels: Mapping[Level, int]
    systems: Mapping[str, int]
    with_references: int
    with_facts: int
    with_variants: int
    qualities: Mapping[str, QualityCheck]
    problems: tuple[Problem, ...]
    errors: int
    warnings: int
    skipped: int

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def hidden(self) -> int:
        return self.errors + self.warnings - len(self.problems)

    def to_record(self) -> dict[str, Any]:
        """JSON-ready values."""
        return asdict(self) | {"hidden": self.hidden, "ok": self.ok}


def check(
    paths: Sequence[PathLike],
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    ratings: Sequence[str] = (),
    scales: Mapping[str, tuple[float, float]] | None = None,
    largest_record: int = USUAL,
    progress: Callable[[int, float | None], None] = lambda done, share: None,
) -> CheckReport:
    """Reads all files to the end. Missing files and unknown formats are problems like others.

    `progress` hears how many samples were read, and the share of the input if that is known.
    """
    options = read_options(columns or {}, ratings, scales or {})
    sources, unopened = open_sources(paths, format, Limits(largest_record), options.columns)
    samples = Samples(sources, options, bad="skip", keep=ALL_PROBLEMS)
    levels: Counter[Level] = Counter()
    systems: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    qualities: dict[str, QualityCheck] = {}
    for count, sample in enumerate(samples, start=1):
        if count % REPORT_EVERY == 0:
            progress(count, samples.fraction())
        levels[sample.level] += 1
        if sample.system:
            systems[sample.system] += 1
        for part in ("references", "facts", "variants"):
            parts[part] += bool(getattr(sample, part))
        for quality, rating in sample.ratings.items():
            qualities[quality] = _with(qualities.get(quality), rating)
    return CheckReport(
        files=tuple(str(path) for path in paths),
        formats=samples.formats,
        samples=levels.total(),
        levels=dict(levels),
        systems=dict(systems.most_common()),
        with_references=parts["references"],
        with_facts=parts["facts"],
        with_variants=parts["variants"],
        qualities=qualities,
        problems=(*unopened, *samples.problems),
        errors=len(unopened) + samples.counts.errors,
        warnings=samples.counts.warnings,
        skipped=samples.skipped,
    )


def _with(known: QualityCheck | None, rating: Rating) -> QualityCheck:
    known = known or QualityCheck(0, 0, 0, None, None, rating.scale)
    given = rating.given
    numbers = [*given, *(end for end in (known.low, known.high) if end is not None)]
    return QualityCheck(
        samples=known.samples + 1,
        ratings=known.ratings + len(given),
        dropped=known.dropped + len(rating.values) - len(given),
        low=min(numbers, default=None),
        high=max(numbers, default=None),
        scale=known.scale if known.scale == rating.scale else None,
    )
