"""A rating job: the questions, the dialogues, and the number of raters. It holds values only.

A quality and its scale are written as on the command line:

    overall             on the usual scale, 1 to 5
    natural:1-3         on a scale of its own
    understandable:0-1

If answers are compared there is no scale: for each quality a rater says which answer has more of
it, or that both have the same.

`design.py` makes a job from samples and assigns tasks to raters, and `store.py` stores it. A stored
job never changes; raters may be added to it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from dialeval.errors import UsageError, did_you_mean
from dialeval.sample import Sample

USUAL_SCALE = (1, 5)
LOWEST, HIGHEST = 0, 10
"""Each point of a scale is a key of the keyboard: 0 to 9, and 0 for 10, too."""

FIRST, TIE, SECOND = 1.0, 0.5, 0.0
"""The outcomes of a comparison, as the share of the win that goes to the first answer."""

PREFERENCE = "preference"
"""The quality that is compared by default."""

DEFAULT_QUALITIES = "coherence,fluency,overall"
DEFAULT_SHARE = 0.05
"""What is rated by default, and the share of attention checks and of repeated dialogues."""

DESCRIPTIONS: Mapping[str, str] = {
    "coherence": "Does the answer fit what was said before it?",
    "fluency": "Is it written as a fluent speaker would write it?",
    "overall": "All in all, how good is it?",
    "engaging": "Does it make you want to go on talking?",
    "relevance": "Is it about what was said before it?",
    "natural": "Would a person say it like this?",
    "consistency": "Does it agree with what the same speaker said before?",
    "diversity": "Does it say something that was not said before?",
    "specific": "Is it made for this conversation, or would it fit any?",
    "understandable": "Can you understand what it says?",
    "interesting": "Does it say something interesting?",
    "informative": "Does it tell you something?",
    PREFERENCE: "Which answer is better?",
}
"""The default question about a quality."""

_FORM = re.compile(r"(?P<name>[^:,]+?)\s*(?::\s*(?P<low>-?\d+)\s*-\s*(?P<high>-?\d+))?")


@dataclass(frozen=True, slots=True)
class Quality:
    """One question to a rater. `low` and `high` are the ends of its scale of whole numbers."""

    name: str
    low: int = USUAL_SCALE[0]
    high: int = USUAL_SCALE[1]
    description: str = ""

    @property
    def points(self) -> range:
        return range(self.low, self.high + 1)

    def share(self, value: float) -> float:
        """Returns the position of a rating on the scale: 0 at its low end, 1 at its high end."""
        return (value - self.low) / (self.high - self.low)


def parse_qualities(text: str) -> tuple[Quality, ...]:
    """`"overall:1-5,natural:1-3"` -> qualities, in this order."""
    qualities = tuple(_parse(part.strip()) for part in text.split(",") if part.strip())
    names = [quality.name for quality in qualities]
    if not qualities:
        raise UsageError("--qualities: name at least one, such as overall:1-5")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"--qualities: {twice[0]!r} is named twice")
    return qualities


def described(qualities: Sequence[Quality], descriptions: Mapping[str, str]) -> tuple[Quality, ...]:
    """Returns the qualities with the question about each."""
    names = [quality.name for quality in qualities]
    for name in descriptions:
        if name not in names:
            raise UsageError(
                f"--describe: there is no quality {name!r}.{did_you_mean(name, names)}"
            )
    return tuple(
        replace(quality, description=descriptions.get(quality.name, quality.description))
        for quality in qualities
    )


def _parse(text: str) -> Quality:
    form = _FORM.fullmatch(text)
    if form is None:
        raise UsageError(f"--qualities {text!r}: expected NAME or NAME:LOW-HIGH, as overall:1-5")
    name = form["name"].strip()
    low, high = USUAL_SCALE if form["low"] is None else (int(form["low"]), int(form["high"]))
    if not LOWEST <= low < high <= HIGHEST:
        raise UsageError(
            f"--qualities {text!r}: a scale goes from a smaller to a larger whole number between"
            f" {LOWEST} and {HIGHEST}"
        )
    if "__" in name or not name.isprintable() or len(name) > 60:
        raise UsageError(f"--qualities: {name!r} cannot be the name of a quality")
    return Quality(name, low, high, DESCRIPTIONS.get(name.lower(), ""))


Kind = Literal["rate", "compare"]
TaskKind = Literal["sample", "check"]
Answers = Mapping[str, float]
"""Quality -> the rating, or in a comparison `FIRST`, `TIE` or `SECOND`."""


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to judge: a sample, or two answers to one item.

    A `check` is a task with a known outcome: its last sample is nonsense, which an attentive rater
    puts on the low side of the scales, or below the other answer.
    """

    number: int
    kind: TaskKind
    samples: tuple[Sample, ...]
    scores: tuple[Mapping[str, float | None], ...] = ()
    """The scores of each sample, if it came from a run. Raters never see them."""

    def to_record(self) -> dict[str, Any]:
        record: dict[str, Any] = {"samples": [sample.to_record() for sample in self.samples]}
        return record | ({"scores": list(self.scores)} if any(self.scores) else {})

    @classmethod
    def from_record(cls, number: int, kind: TaskKind, record: Mapping[str, Any]) -> Task:
        samples = tuple(Sample.from_record(sample) for sample in record["samples"])
        return cls(number, kind, samples, tuple(record.get("scores") or ({} for _ in samples)))


@dataclass(frozen=True)
class Job:
    """The parts that are the same for all raters.

    per_item    the number of raters of each task; 0: all of them
    checks      the share of attention checks, relative to the samples
    duplicates  the share of the samples that each rater sees a second time
    directions  metric -> whether higher or lower is better, if the samples came from runs
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
        """Returns whether these are complete answers to the questions of the job."""
        if set(answers) != {quality.name for quality in self.qualities}:
            return False
        if self.kind == "compare":
            return all(value in (FIRST, TIE, SECOND) for value in answers.values())
        return all(answers[quality.name] in quality.points for quality in self.qualities)

    def passes(self, answers: Answers) -> bool:
        """Returns whether the answers to an attention check are those of an attentive rater.

        Nonsense is below the middle of the scales, on average over the qualities: one of them may
        be high for nonsense (`harmless`). In a comparison, the other answer is better.
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
        """Returns the digest of what is judged: equal if the same samples are put to raters in the
        same way."""
        whole = hashlib.sha256(self.kind.encode())
        for task in self.tasks:
            record = json.dumps(task.to_record()["samples"], sort_keys=True)
            whole.update(f"{task.kind}\n{record}\n".encode())
        return whole.hexdigest()


def job_as_asked(
    qualities: str | None,
    describe: Mapping[str, str],
    compare: bool,
    title: str | None,
    instructions: str | Path | None,
    per_item: int,
    checks: float,
    duplicates: float,
    seed: int,
) -> tuple[Job, list[str]]:
    """Returns the job that the options of `rate` ask for, and the names of the fields that were set
    explicitly."""
    usual = PREFERENCE if compare else DEFAULT_QUALITIES
    asked = parse_qualities(usual if qualities is None else qualities)
    job = Job(
        kind="compare" if compare else "rate",
        qualities=described(asked, describe),
        title=title or ("Which answer is better?" if compare else "Rating dialogues"),
        instructions=Path(instructions).read_text(encoding="utf-8") if instructions else "",
        seed=seed,
        per_item=per_item,
        checks=checks,
        duplicates=duplicates,
    )
    named = {
        "qualities": qualities is not None or describe,
        "kind": compare,
        "title": title,
        "instructions": instructions,
        "per_item": per_item,
        "checks": checks != DEFAULT_SHARE,
        "duplicates": duplicates != DEFAULT_SHARE,
    }
    return job, [field for field, value in named.items() if value]
