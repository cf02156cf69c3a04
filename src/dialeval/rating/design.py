"""From samples to a rating job: tasks, attention checks, comparisons.

Whom the job asks and in which order is said in `order.py`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dialeval.errors import UsageError
from dialeval.rating.job import Job, Task
from dialeval.rating.material import Material
from dialeval.rating.pairing import pair_up
from dialeval.rating.salad import salad_of, vocabulary
from dialeval.sample import Sample

MOST_TASKS = 100_000
"""More than people ever rate in one job; a slip of the pen that would fill the disk."""


@dataclass(frozen=True)
class Design:
    """A job, and what to tell whoever made it."""

    job: Job
    remarks: tuple[str, ...] = ()


def design(material: Sequence[Material], job: Job, most_pairs: int | None = None) -> Design:
    """The job with its tasks: each sample on its own, or rival answers side by side, of these a
    random `most_pairs`."""
    directions = {name: way for source in material for name, way in source.directions.items()}
    job = replace(job, sources=tuple(one.name for one in material), directions=directions)
    if job.kind == "compare":
        return _comparison(material, job, most_pairs)
    return _rating(material, job)


def _rating(material: Sequence[Material], job: Job) -> Design:
    samples = [sample for source in material for sample in source.samples]
    _check_ids(samples)
    scores = {ident: found for source in material for ident, found in source.scores.items()}
    judged = [(sample,) for sample in samples if sample.turns]
    remarks = []
    if without := len(samples) - len(judged):
        remarks.append(f"{without:,} samples hold no dialogue: left out")
    return Design(_with_tasks(job, judged, scores), tuple(remarks))


def _comparison(material: Sequence[Material], job: Job, most: int | None) -> Design:
    found = pair_up(material)
    pairs = found.pairs
    if most is not None and most < len(pairs):
        chosen = random.Random(f"{job.seed} pairs").sample(range(len(pairs)), most)
        pairs = tuple(pairs[place] for place in sorted(chosen))
    scores = {
        ident: values
        for source in material
        for name, values in source.scores.items()
        for ident in (name, f"{source.name}/{name}")
    }
    remarks = []
    if found.left_out:
        remarks.append(f"{found.left_out:,} samples have no rival: left out")
    if found.same:
        remarks.append(f"{found.same:,} pairs of equal answers: left out")
    return Design(_with_tasks(job, pairs, scores), tuple(remarks))


def _with_tasks(
    job: Job,
    judged: Sequence[tuple[Sample, ...]],
    scores: Mapping[str, Mapping[str, float | None]],
) -> Job:
    if not judged:
        raise UsageError("there is nothing to rate")
    if len(judged) > MOST_TASKS:
        raise UsageError(
            f"{len(judged):,} are too many to rate (at most {MOST_TASKS:,}): choose some with"
            " --limit N --seed 0"
        )
    tasks = [
        Task(number, "sample", samples, tuple(scores.get(sample.id, {}) for sample in samples))
        for number, samples in enumerate(judged, 1)
    ]
    return replace(job, tasks=(*tasks, *_checks(job, judged)))


def _checks(job: Job, judged: Sequence[tuple[Sample, ...]]) -> list[Task]:
    """Word salad in the place of a response; beside the response itself in a comparison."""
    count = math.ceil(job.checks * len(judged))
    if not count:
        return []
    generator = random.Random(f"{job.seed} checks")
    words = vocabulary([samples[0] for samples in judged])
    checks = []
    for place in range(count):
        source = judged[generator.randrange(len(judged))][0]
        salad = salad_of(source, words, generator)
        name = f"check-{place + 1:04d}"
        bad = replace(salad, id=name, references=(), item=name, system="")
        good = replace(source, id=f"{name}-good", references=(), item=name, system="")
        samples = (bad,) if job.kind == "rate" else (good, bad)
        checks.append(Task(len(judged) + place + 1, "check", samples, tuple({} for _ in samples)))
    return checks


def _check_ids(samples: Sequence[Sample]) -> None:
    seen: set[str] = set()
    for sample in samples:
        if sample.id in seen:
            raise UsageError(
                f"the id {sample.id!r} occurs in two sources. To compare answers of two systems,"
                " add --compare; otherwise give each sample an id of its own."
            )
        seen.add(sample.id)
