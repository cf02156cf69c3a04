"""What is held against what: each metric with each quality, by turn, by system or within groups.

Every metric against every quality that people rated: the rows of `dialeval agree`.

    by turn             all samples of a level together (turns and dialogues are never mixed)
    by system           the mean score of each system against its mean rating
    by within-item      the correlation among the answers to one item, mean over the items
    by within-system    the correlation among the answers of one system, mean over the systems

Held against the mean rating, one rater, or the maximum over raters. A maximum
has no interval: resampling would show the spread of one rater, not of the best of several. It has
no accuracy of pairs either: that is largest with the rater who ties most, 1 with a constant one.

Samples without a score or without a rating are left out and counted. Where a metric is better the
lower it is, correlations keep their sign, but pairs count as ordered alike when the lower score
goes with the higher rating.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dialeval.agreement.bootstrap import Bootstrap, Progress
from dialeval.agreement.correlation import (
    NAMES,
    Coefficient,
    Correlation,
    Name,
    WithinGroups,
    correlations,
    kendall,
    pearson,
    spearman,
    system_means,
    within_groups,
)
from dialeval.agreement.pairwise import PairwiseAccuracy, pairwise_accuracy
from dialeval.agreement.ranks import Floats
from dialeval.agreement.rated import RatedLevel, Target, maximum_of, rated_run
from dialeval.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from dialeval.metric import Direction
    from dialeval.runs.run import Run
    from dialeval.sample import Level

By = Literal["turn", "system", "within-item", "within-system"]

COEFFICIENTS: dict[Name, Coefficient] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}


def check_rated(levels: Sequence[RatedLevel]) -> None:
    """There is something to agree with in every data set."""
    for dataset in dict.fromkeys(level.dataset for level in levels):
        if not any(level.qualities for level in levels if level.dataset == dataset):
            raise UsageError(
                f"{dataset or 'the data'}: no sample has ratings. A run keeps those of the files"
                " that it scored: dialeval score FILE --rating COLUMN -o RUN"
            )


def points(level: Level, by: By) -> str:
    """What is a point in a plot of this grouping, for headings."""
    return {
        "turn": f"{level}s",
        "system": f"means of systems over {level}s",
        "within-item": f"{level}s within items",
        "within-system": f"{level}s within systems",
    }[by]


@dataclass(frozen=True)
class Case:
    """The numbers behind one row."""

    level: RatedLevel
    metric: str
    quality: str
    scores: Floats
    ratings: Floats
    """Samples x targets."""
    groups: Sequence[str]
    """The system or the item of each sample, as the grouping asks."""


def cases_of(level: RatedLevel, metrics: Sequence[str], by: By) -> list[Case]:
    """Each quality of a level with each metric of it."""
    for metric in metrics:
        if metric not in level.directions:
            raise UsageError(
                f"{level.dataset}: no metric {metric!r}.{did_you_mean(metric, level.directions)}"
                f" It has: {', '.join(level.directions)}"
            )
    labels = level.items if by == "within-item" else level.systems
    if by == "within-item" and level.qualities and not any(labels):
        raise UsageError(
            f"{level.dataset}: no {level.level} says which item it answers, so nothing can be"
            " compared within an item. Use --by turn, or give the samples the field 'item'."
        )
    found = []
    for quality, rated in level.qualities.items():
        groups = [labels[place] for place in rated.places.tolist()]
        unknown = np.array([by == "within-item" and not group for group in groups], dtype=bool)
        for metric in level.scores:
            if not metrics or metric in metrics:
                scores = level.scores[metric][rated.places]
                scores[unknown] = np.nan
                found.append(Case(level, metric, quality, scores, rated.ratings, groups))
    return found


def oriented(case: Case) -> Floats:
    """Scores that are better the higher they are."""
    return -case.scores if case.level.directions[case.metric] == "lower" else case.scores


@dataclass(frozen=True)
class CommonSamples:
    """Metrics on the samples that all of them scored; the others have no scores any more."""

    cases: list[Case]
    left_out: int
    """Rated samples that some metrics scored, but not all."""
    scarcest: str
    """The metric with the fewest scores, where samples are left out."""


def on_common_samples(cases: Sequence[Case]) -> CommonSamples:
    """Of the metrics of one quality. One without any score does not count."""
    scored = [~np.isnan(case.scores + case.ratings[:, 0]) for case in cases]
    counted = {case.metric: there for case, there in zip(cases, scored, strict=True) if there.any()}
    if not counted:
        return CommonSamples(list(cases), 0, "")
    common = np.logical_and.reduce(list(counted.values()))
    left_out = int(np.logical_or.reduce(list(counted.values())).sum() - common.sum())
    scarcest = min(counted, key=lambda metric: int(counted[metric].sum())) if left_out else ""
    kept = [replace(case, scores=np.where(common, case.scores, np.nan)) for case in cases]
    return CommonSamples(kept, left_out, scarcest)


def correlate(
    scores: Floats,
    human: Floats,
    groups: Sequence[str],
    by: By,
    bootstrap: Bootstrap | None = None,
    names: Sequence[Name] = NAMES,
    flat: float | None = None,
) -> Mapping[Name, Correlation | WithinGroups]:
    """Correlations of the items that the grouping compares; `flat` as in `within_groups`."""
    if by == "turn":
        return correlations(scores, human, bootstrap, names)
    if by == "system":
        means = system_means(scores, human, groups)
        return correlations(means.x, means.y, bootstrap, names)
    return {
        name: within_groups(scores, human, groups, COEFFICIENTS[name], flat=flat) for name in names
    }


MOST_PAIRS = 1_000_000
"""Of so many drawn pairs an accuracy is known to +-.001."""
NO_PAIRS = "not taken as a maximum over raters"


@dataclass(frozen=True)
class Estimate:
    """A correlation in a row, however it came about; `value` is None where it is not defined."""

    value: float | None
    p: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    rater: str = ""
    """With whom it is largest, where it is a maximum over raters."""
    groups: int | None = None
    """Groups in the mean, where it is one over groups."""
    groups_undefined: int | None = None
    no_interval: str = ""
    """Why there is none, although one was asked for."""

    def to_record(self) -> dict[str, Any]:
        """The four numbers always, the rest where there is something to tell."""
        record = asdict(self)
        kept = {name: record.pop(name) for name in ("value", "p", "low", "high")}
        return kept | {name: value for name, value in record.items() if value not in ("", None)}


@dataclass(frozen=True)
class AgreementRow:
    """One metric, one quality, one level; `n` items had a score and a rating."""

    dataset: str
    metric: str
    quality: str
    level: Level
    by: By
    n: int
    n_missing: int
    correlations: Mapping[Name, Estimate]
    target: str
    direction: Direction
    pairwise: PairwiseAccuracy
    ties_metric: int
    """Pairs of items (within a group, where there are groups) with the same score."""
    ties_human: int

    def to_record(self) -> dict[str, Any]:
        record = dict(self.__dict__)
        found: Mapping[Name, Estimate] = record.pop("correlations")
        pairwise: PairwiseAccuracy = record.pop("pairwise")
        return (
            record
            | {name: estimate.to_record() for name, estimate in found.items()}
            | {"pairwise": asdict(pairwise)}
        )


def agree(
    *runs: Run | str | Path,
    qualities: Sequence[str] = (),
    metrics: Sequence[str] = (),
    by: By = "turn",
    target: str = "mean",
    rounds: int = 1000,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> list[AgreementRow]:
    """How well the metrics of runs agree with the ratings that the runs hold.

    `rounds` of bootstrap give the intervals, 0 none. Neither `workers` nor `progress` can move a
    number.
    """
    levels = [level for run in runs for level in open_rated(run, target, qualities)]
    return agreement_rows(
        levels,
        metrics=metrics,
        by=by,
        rounds=rounds,
        seed=seed,
        workers=workers,
        progress=progress,
    )


def open_rated(run: Run | str | Path, target: str, qualities: Sequence[str]) -> list[RatedLevel]:
    """The rated samples of a run, by its directory or opened already."""
    if isinstance(run, str | Path):
        run = _open(Path(run))
    return rated_run(run, Target.parse(target), qualities)


def _open(path: Path) -> Run:
    """A file of ratings, or a folder of such files, is the likeliest slip."""
    from dialeval.runs.run import open_run

    try:
        return open_run(path)
    except UsageError as error:
        holds = ("manifest.json", "job.json", "probe.json", "*/manifest.json")
        if not path.exists() or any(True for name in holds for _ in path.glob(name)):
            raise
        raise UsageError(
            f"{error}; or hold scores that you have against its ratings: dialeval agree {path}"
            " --scores SCORES.csv"
        ) from None


def agreement_rows(
    levels: Iterable[RatedLevel],
    *,
    metrics: Sequence[str] = (),
    by: By = "turn",
    rounds: int = 1000,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> list[AgreementRow]:
    """A row for each level, quality and metric that has a score there."""
    levels = list(levels)
    check_rated(levels)
    cases = [case for level in levels for case in cases_of(level, metrics, by)]
    per_row = max(1, rounds)
    rows: list[AgreementRow] = []

    def report(done: int, total: int) -> None:
        if progress:
            progress(len(rows) * per_row + done, len(cases) * per_row)

    for case in cases:
        bootstrap = None
        if rounds:
            rng = np.random.default_rng(seed)
            bootstrap = Bootstrap(rng, rounds, workers=workers, progress=report)
        rows.append(_row(case, by, bootstrap, np.random.default_rng(seed)))
        report(0, 1)
    return rows


def _row(case: Case, by: By, bootstrap: Bootstrap | None, rng: np.random.Generator) -> AgreementRow:
    level, columns = case.level, case.ratings.T
    raters = level.qualities[case.quality].raters
    maximum = level.target.kind == "max-over-raters"
    found = [
        correlate(case.scores, column, case.groups, by, None if maximum else bootstrap)
        for column in columns
    ]
    if maximum:
        pairwise = PairwiseAccuracy(None, None, None, 0, 0, reason=NO_PAIRS)
        estimates = {name: _maximum([one[name] for one in found], raters) for name in NAMES}
    else:
        pairwise = _pairwise(case, columns[0], by, rng)
        estimates = {name: _estimate(found[0][name]) for name in NAMES}
    # of several raters, the counts are those of the one with the largest Spearman correlation
    best = raters.index(estimates["spearman"].rater) if estimates["spearman"].rater else 0
    shown = found[best]["spearman"]
    return AgreementRow(
        level.dataset,
        case.metric,
        case.quality,
        level.level,
        by,
        shown.n,
        shown.n_missing,
        estimates,
        str(level.target),
        level.directions[case.metric],
        pairwise,
        shown.ties_x,
        shown.ties_y,
    )


def _pairwise(case: Case, column: Floats, by: By, rng: np.random.Generator) -> PairwiseAccuracy:
    scores = oriented(case)
    if by == "turn":
        return pairwise_accuracy(scores, column, rng=rng, most_pairs=MOST_PAIRS)
    if by == "system":
        means = system_means(scores, column, case.groups)
        return pairwise_accuracy(means.x, means.y, rng=rng, most_pairs=MOST_PAIRS)
    return pairwise_accuracy(scores, column, case.groups, rng=rng, most_pairs=MOST_PAIRS)


def _estimate(found: Correlation | WithinGroups) -> Estimate:
    groups = undefined = None
    no_interval = ""
    if isinstance(found, WithinGroups):
        groups, undefined = found.n_groups, found.n_undefined
    else:
        no_interval = found.no_interval
    return Estimate(
        found.value,
        found.p,
        found.low,
        found.high,
        found.reason,
        groups=groups,
        groups_undefined=undefined,
        no_interval=no_interval,
    )


def _maximum(found: Sequence[Correlation | WithinGroups], raters: Sequence[str]) -> Estimate:
    best = maximum_of(found)
    return Estimate(
        best.value,
        best.p,
        reason=best.reason,
        rater="" if best.rater is None else raters[best.rater],
    )
