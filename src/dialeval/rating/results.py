"""What raters said, as samples with ratings: what `agree`, `raters` and `score` read.

Where samples were rated, a sample has one number per rater and quality. Where answers were
compared, an answer has the share of its comparisons that it won in the eyes of the rater, from 0 to
1, ties half. Attention checks and second showings are no ratings and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from dialeval.errors import UsageError
from dialeval.metric import Direction
from dialeval.rating.job import Job
from dialeval.rating.opening import open_store
from dialeval.rating.store import Counted, Store
from dialeval.sample import Rating, Sample

Said = dict[str, dict[str, list[float]]]
"""Quality -> rater -> numbers."""


def rated_samples(store: Store) -> Iterator[Sample]:
    """Every sample of the job, with what was said of it so far."""
    answers = first_answers(store.counted())
    names = sorted({one.rater for of_task in answers.values() for one in of_task}, key=_by_number)
    samples: dict[str, Sample] = {}
    said: dict[str, Said] = {}
    for task in store.tasks("sample"):
        for place, sample in enumerate(task.samples):
            samples.setdefault(sample.id, sample)
            _add(said.setdefault(sample.id, {}), answers.get(task.number, []), place)
        if store.job.kind == "rate":
            sample = task.samples[0]
            yield replace(sample, ratings=_ratings(store.job, said.pop(sample.id), names))
    if store.job.kind == "compare":
        for ident, sample in samples.items():
            yield replace(sample, ratings=_ratings(store.job, said[ident], names))


def scores_of(store: Store) -> dict[str, dict[str, float | None]]:
    """Metric -> id of the sample -> score, where the samples came from runs."""
    scores: dict[str, dict[str, float | None]] = {}
    for task in store.tasks("sample"):
        for sample, found in zip(task.samples, task.scores, strict=True):
            for metric, value in found.items():
                scores.setdefault(metric, {})[sample.id] = value
    return scores


@dataclass(frozen=True)
class Judged:
    """What people and metrics say of the same samples, from one database."""

    samples: list[Sample]
    scores: Mapping[str, Mapping[str, float | None]]
    directions: Mapping[str, Direction]


def judged_samples(path: str) -> Judged:
    """For `dialeval agree ratings.db`: of a job that was made from runs, and has ratings."""
    store = open_store(path, read_only=True)
    if store is None:
        raise UsageError(f"{path}: is empty")
    scores, samples = scores_of(store), list(rated_samples(store))
    directions = store.job.directions
    store.close()
    if not scores:
        raise UsageError(
            f"{path} holds ratings but no scores, as it was not made from runs. Score the same"
            f" samples and name the run: dialeval score {path} -o RUN, then dialeval agree {path}"
            " --scores RUN"
        )
    if not any(sample.ratings for sample in samples):
        raise UsageError(f"{path}: nobody has rated anything yet")
    known = {name: cast("Direction", directions[name]) for name in scores if name in directions}
    return Judged(samples, scores, known)


def first_answers(counted: list[Counted]) -> Mapping[int, list[Counted]]:
    """Task -> what raters said when they saw it for the first time."""
    answers: dict[int, list[Counted]] = {}
    for one in counted:
        if not one.is_repeat:
            answers.setdefault(one.task, []).append(one)
    return answers


def _add(said: Said, answers: list[Counted], place: int) -> None:
    for one in answers:
        for quality, value in one.answers.items():
            share = 1 - value if place == 1 else value
            said.setdefault(quality, {}).setdefault(one.rater, []).append(share)


def _ratings(job: Job, said: Said, names: list[str]) -> dict[str, Rating]:
    ratings = {}
    for quality in job.qualities:
        by_rater = said.get(quality.name, {})
        values = tuple(
            sum(by_rater[name]) / len(by_rater[name]) if name in by_rater else None
            for name in names
        )
        scale = (0.0, 1.0) if job.kind == "compare" else (float(quality.low), float(quality.high))
        if by_rater:
            ratings[quality.name] = Rating(values, scale, tuple(names))
    return ratings


def _by_number(name: str) -> tuple[int, str]:
    return len(name), name
