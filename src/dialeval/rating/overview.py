"""The state of a job: progress, attention and consistency of each rater, agreement, preferences.

attention        share of the attention checks that a rater passed
self-agreement   share of the answers that a rater repeated when a task came a second time
alpha            Krippendorff's, ordinal (`agreement/raters.py`); for comparisons, interval
kappa            Fleiss' (`agreement/raters.py`). Comparisons count in both directions, a win of one
                 as a loss of the other, so that it does not matter which system is the first
win rate         share of the comparisons that a system won; a tie is half a win
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dialeval.agreement.arithmetic import normal_quantile
from dialeval.agreement.coefficient import Coefficient, record_of
from dialeval.agreement.rated import ratings_matrix
from dialeval.agreement.raters import fleiss_kappa, krippendorff_alpha
from dialeval.rating.bradley_terry import Outcome, Ranking, bradley_terry
from dialeval.rating.job import FIRST, SECOND, TIE, Job, Task
from dialeval.rating.results import first_answers
from dialeval.rating.store import Counted, Store


@dataclass(frozen=True)
class Share:
    """A count out of a total."""

    count: int
    of: int

    @property
    def value(self) -> float | None:
        return self.count / self.of if self.of else None


@dataclass(frozen=True)
class RaterProgress:
    """One rater. `last` is the time of the last save, empty before the first."""

    name: str
    pages: Share
    checks: Share
    steady: Share
    last: str


@dataclass(frozen=True)
class QualityAgreement:
    """The agreement of the raters on one quality. Comparisons have no mean."""

    quality: str
    ratings: int
    mean: float | None
    alpha: Coefficient
    kappa: Coefficient


@dataclass(frozen=True)
class PairCount:
    """How often the first system beat the second. The interval is Wilson's over items: the answers
    of several raters about one item count as one observation."""

    first: str
    second: str
    wins: int
    ties: int
    losses: int
    rate: float
    low: float
    high: float
    items: int


@dataclass(frozen=True)
class Preferences:
    """The systems that people prefer, for one quality."""

    quality: str
    win_rates: Mapping[str, float]
    pairs: tuple[PairCount, ...]
    ranking: Ranking


@dataclass(frozen=True)
class Comment:
    """What a rater wrote on a page; `shown` are the ids of the samples on it."""

    rater: str
    page: int
    shown: tuple[str, ...]
    text: str


MOST_COMMENTS = 100
"""The last ones are shown; an export has all."""


@dataclass(frozen=True)
class Overview:
    """The content of the organiser's page. `comments` are the last ones of all `commented`."""

    raters: tuple[RaterProgress, ...]
    agreement: tuple[QualityAgreement, ...]
    preferences: tuple[Preferences, ...]
    tasks: int
    checks: int
    commented: int
    comments: tuple[Comment, ...]

    @property
    def pages(self) -> Share:
        return Share(sum(r.pages.count for r in self.raters), sum(r.pages.of for r in self.raters))

    def to_record(self) -> dict[str, Any]:
        return record_of(self)


def overview(store: Store) -> Overview:
    """Returns the overview of the answers that are saved now."""
    job, counted, totals = store.job, store.counted(), store.totals()
    tasks = {task.number: task for task in store.tasks()}
    checks = {number for number, task in tasks.items() if task.kind == "check"}
    by_rater: dict[str, list[Counted]] = {name: [] for name in totals}
    for one in counted:
        by_rater[one.rater].append(one)
    judged = [one for one in counted if one.task in tasks and one.task not in checks]
    answers = first_answers(judged)
    return Overview(
        tuple(_rater(name, by_rater[name], totals[name], job, checks) for name in totals),
        tuple(_agreement(q.name, answers, list(totals), job) for q in job.qualities),
        tuple(_preferences(q.name, answers, tasks) for q in job.qualities)
        if job.kind == "compare"
        else (),
        len(tasks) - len(checks),
        len(checks),
        sum(bool(one.comment) for one in counted),
        _comments(counted, tasks),
    )


def _comments(counted: Sequence[Counted], tasks: Mapping[int, Task]) -> tuple[Comment, ...]:
    """Returns the last comments, the newest first."""
    written = sorted((one for one in counted if one.comment), key=lambda one: -one.number)
    return tuple(
        Comment(
            one.rater,
            one.position,
            tuple(s.id for s in tasks[one.task].samples) if one.task in tasks else (),
            one.comment,
        )
        for one in written[:MOST_COMMENTS]
    )


def _rater(
    name: str, own: Sequence[Counted], total: int, job: Job, checks: set[int]
) -> RaterProgress:
    tested = [job.passes(one.answers) for one in own if one.task in checks]
    first = {one.task: one.answers for one in own if not one.is_repeat}
    pairs = [(first[one.task], one.answers) for one in own if one.is_repeat and one.task in first]
    same = [before[q.name] == after[q.name] for before, after in pairs for q in job.qualities]
    return RaterProgress(
        name,
        Share(len(own), total),
        Share(sum(tested), len(tested)),
        Share(sum(same), len(same)),
        max((one.saved_at for one in own), default=""),
    )


def _agreement(
    quality: str, answers: Mapping[int, Sequence[Counted]], names: Sequence[str], job: Job
) -> QualityAgreement:
    given_by = [[(one.rater, one.answers[quality]) for one in own] for own in answers.values()]
    table, _ = ratings_matrix(given_by, names)
    given = table[~np.isnan(table)]
    mean = float(given.mean()) if len(given) and job.kind == "rate" else None
    if job.kind == "compare":
        table = np.vstack([table, FIRST + SECOND - table])
    return QualityAgreement(
        quality,
        len(given),
        mean,
        krippendorff_alpha(table, "interval" if job.kind == "compare" else "ordinal"),
        fleiss_kappa(table),
    )


def _preferences(
    quality: str, answers: Mapping[int, Sequence[Counted]], tasks: Mapping[int, Task]
) -> Preferences:
    outcomes = []
    for number, of_task in answers.items():
        first, second = tasks[number].samples
        item = first.item or first.dialogue or str(number)
        outcomes += [
            Outcome(first.system, second.system, one.answers[quality], item) for one in of_task
        ]
    shares: dict[str, list[float]] = {}
    by_pair: dict[tuple[str, str], list[Outcome]] = {}
    for one in outcomes:
        shares.setdefault(one.first, []).append(one.share)
        shares.setdefault(one.second, []).append(1 - one.share)
        by_pair.setdefault((one.first, one.second), []).append(one)
    rates = {name: sum(won) / len(won) for name, won in shares.items()}
    return Preferences(
        quality,
        dict(sorted(rates.items(), key=lambda pair: -pair[1])),
        tuple(_pair(first, second, found) for (first, second), found in by_pair.items()),
        bradley_terry(outcomes),
    )


def _pair(first: str, second: str, outcomes: Sequence[Outcome]) -> PairCount:
    shares = [one.share for one in outcomes]
    ties = sum(share == TIE for share in shares)
    wins = sum(share > TIE for share in shares)
    by_item: dict[str, list[float]] = {}
    for one in outcomes:
        by_item.setdefault(one.item, []).append(one.share)
    rate = sum(sum(own) / len(own) for own in by_item.values()) / len(by_item)
    low, high = wilson(rate, len(by_item))
    return PairCount(
        first, second, wins, ties, len(shares) - wins - ties, rate, low, high, len(by_item)
    )


def wilson(rate: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's (1927) interval of a share of n observations."""
    z = normal_quantile((1 + level) / 2)
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (rate * (1 - rate) / n + z * z / (4 * n * n)) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)
