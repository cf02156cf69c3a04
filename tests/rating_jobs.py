"""Small rating jobs for tests."""

from __future__ import annotations

from dialeval.rating.design import RatingMaterial, design
from dialeval.rating.job import Job, parse_qualities
from dialeval.sample import Sample, Turn


def answers_of(system: str, count: int, words: str = "") -> tuple[Sample, ...]:
    return tuple(
        Sample(
            id=f"{system}-{i}",
            context=(Turn(f"What about {i}?", "user"),),
            response=f"{i} {words or 'is what ' + system + ' says'}",
            system=system,
            item=f"item-{i}",
        )
        for i in range(count)
    )


def rating_job(count: int = 6, **options) -> Job:
    """`count` answers of one bot, rated for `overall` (1 to 5) and `natural` (1 to 3)."""
    job = Job("rate", parse_qualities("overall,natural:1-3"), **options)
    return design([RatingMaterial("chats", answers_of("bot", count))], job).job


def comparison_job(count: int = 6, systems: tuple[str, ...] = ("a", "b"), **options) -> Job:
    job = Job("compare", parse_qualities("preference"), **options)
    return design([RatingMaterial(name, answers_of(name, count)) for name in systems], job).job
