"""Who sees what, when: an order of its own for each rater, drawn from the seed of the job.

A rater sees the tasks in random order, some of them a second time: a task of the first half of the
order, at least a third of the way later, so that it is judged anew and not remembered. Sides of a
comparison are drawn for each rater and task, and swapped the second time, so that a habit of
choosing the left one shows.

With `per_item` each task goes to so many raters only, and no rater gets more than one task more
than another.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from dialeval.rating.job import Job

APART = 3
"""A second showing is at least the APART-th part of the order behind the first."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a rater sees at one position (from 1). `flipped`: the second sample is on the left."""

    position: int
    task: int
    repeat: bool = False
    flipped: bool = False


def assignments(job: Job, rater: int, raters: int) -> list[Assignment]:
    """Of the rater with this number (from 1), of so many; the same whenever it is asked for."""
    generator = random.Random(f"{job.seed} rater {rater}")
    tasks = _share(job, rater, raters)
    generator.shuffle(tasks)
    flipped = {task: job.kind == "compare" and generator.random() < 0.5 for task in tasks}
    checks = {task.number for task in job.tasks if task.kind == "check"}
    early = [place for place, task in enumerate(tasks[: len(tasks) // 2]) if task not in checks]
    count = min(len(early), math.ceil(job.duplicates * (len(tasks) - len(checks & flipped.keys()))))
    again = generator.sample(early, count)
    order = [(float(place), task, False) for place, task in enumerate(tasks)]
    order += [
        (generator.uniform(place + len(tasks) / APART, len(tasks)), tasks[place], True)
        for place in again
    ]
    return [
        Assignment(position, task, repeat, flipped[task] != (repeat and job.kind == "compare"))
        for position, (_, task, repeat) in enumerate(sorted(order), 1)
    ]


def _share(job: Job, rater: int, raters: int) -> list[int]:
    """The tasks of one rater. Everybody gets all attention checks."""
    if not job.per_item or job.per_item >= raters:
        return [task.number for task in job.tasks]
    samples = [task.number for task in job.tasks if task.kind == "sample"]
    random.Random(f"{job.seed} shares").shuffle(samples)
    own = [
        task
        for place, task in enumerate(samples)
        if (rater - 1 - place * job.per_item) % raters < job.per_item
    ]
    return own + [task.number for task in job.tasks if task.kind == "check"]
