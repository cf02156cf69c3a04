"""A rating job: what is asked, about which dialogues, of how many raters.

Values only. `design.py` makes a job from samples, `order.py` says who sees what when, and
`store.py` keeps it. A job never changes once it is stored; raters may be added to it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from dialeval.rating.quality import FIRST, SECOND, TIE, Quality
from dialeval.sample import Sample

Kind = Literal["rate", "compare"]
TaskKind = Literal["sample", "check"]
Answers = Mapping[str, float]
"""Quality -> the rating, or where answers are compared `FIRST`, `TIE` or `SECOND`."""


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to judge: a sample, or two rival answers to one item.

    A `check` is a task whose outcome is known: its last sample is word salad, which an attentive
    rater puts on the low side of the scales, or below its rival.
    """

    number: int
    kind: TaskKind
    samples: tuple[Sample, ...]
    scores: tuple[Mapping[str, float | None], ...] = ()
    """What metrics say of each sample, where it came from a run. Raters never see it."""

    def to_record(self) -> dict[str, Any]:
        record: dict[str, Any] = {"samples": [sample.to_record() for sample in self.samples]}
        return record | ({"scores": list(self.scores)} if any(self.scores) else {})

    @classmethod
    def from_record(cls, number: int, kind: TaskKind, record: Mapping[str, Any]) -> Task:
        samples = tuple(Sample.from_record(sample) for sample in record["samples"])
        return cls(number, kind, samples, tuple(record.get("scores") or ({} for _ in samples)))


@dataclass(frozen=True)
class Job:
    """What does not change from rater to rater.

    per_item    how many raters see each task; 0: all of them
    checks      share of the samples that is added as attention checks
    duplicates  share of the samples that each rater sees a second time
    directions  metric -> whether higher or lower is better, where the samples came from runs
    """

    kind: Kind
    qualities: tuple[Quality, ...]
    title: str = "Rating dialogues"
    instructions: str = ""
    seed: int = 0
    per_item: int = 0
    checks: float = 0.0
    duplicates: float = 0.0
    sources: tuple[str, ...] = ()
    directions: Mapping[str, str] = field(default_factory=dict)
    tasks: tuple[Task, ...] = field(default=(), repr=False)

    def allows(self, answers: Answers) -> bool:
        """Whether these are complete answers to what the job asks."""
        if set(answers) != {quality.name for quality in self.qualities}:
            return False
        if self.kind == "compare":
            return all(value in (FIRST, TIE, SECOND) for value in answers.values())
        return all(answers[quality.name] in quality.points for quality in self.qualities)

    def passes(self, answers: Answers) -> bool:
        """Whether the answers to an attention check are those of an attentive rater.

        Word salad is below the middle of the scales, on average over the qualities: one of them may
        be such that nonsense has it (`harmless`). A rival is better than word salad.
        """
        if self.kind == "compare":
            return all(value == FIRST for value in answers.values())
        shares = [quality.share(answers[quality.name]) for quality in self.qualities]
        return sum(shares) / len(shares) < 0.5

    def to_record(self) -> dict[str, Any]:
        """Everything but the tasks."""
        return asdict(replace(self, tasks=())) | {"digest": self.digest()}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], tasks: tuple[Task, ...]) -> Job:
        values = {name: value for name, value in record.items() if name != "digest"}
        values["qualities"] = tuple(Quality(**quality) for quality in record["qualities"])
        return cls(**values | {"sources": tuple(record["sources"]), "tasks": tasks})

    def digest(self) -> str:
        """Of what is judged: equal where the same samples are put to raters in the same way."""
        whole = hashlib.sha256(self.kind.encode())
        for task in self.tasks:
            record = json.dumps(task.to_record()["samples"], sort_keys=True)
            whole.update(f"{task.kind}\n{record}\n".encode())
        return whole.hexdigest()
