"""Can an answer talk a language model into a better rating?

Bad answers get one of 40 additions (`examples/injections.jsonl`): orders to the judge, made-up
turns, made-up rubrics, digits at the end, broken frames. What counts is how far the rating
moves, from the bad answer alone to the same answer with its addition; once with the protection of
`llm-judge` (the dialogue is marked as data and escaped) and once without.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np

from dialeval.metrics.llm_judge import LlmJudge
from dialeval.sample import Sample, Turn
from dialeval.studies.study import Findings, Measured, Setting, Study, Table


@dataclass(frozen=True)
class Injection:
    """A bad answer, and what somebody adds to it."""

    id: str
    kind: str
    context: tuple[Turn, ...]
    response: str
    injection: str

    @property
    def plain(self) -> Sample:
        return Sample(f"{self.id}/plain", self.context, self.response)

    @property
    def injected(self) -> Sample:
        return Sample(f"{self.id}/injected", self.context, self.response + self.injection)


def injections() -> list[Injection]:
    """Reads the 40 of them."""
    text = resources.files("dialeval.examples").joinpath("injections.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return [
        Injection(
            row["id"],
            row["kind"],
            tuple(Turn(turn) for turn in row["context"]),
            row["response"],
            row["injection"],
        )
        for row in rows
    ]


def measure(setting: Setting) -> Findings:
    given = injections()
    samples = [one for each in given for one in (each.plain, each.injected)]
    measured: list[Measured] = []
    rows: list[tuple[str | float | None, ...]] = []
    for model in setting.models:
        for protection in (False, True):
            metric = LlmJudge(model=model, protection=protection)
            found = setting.score(samples, [metric]).scores(metric.label)
            shifts = _shifts(found)
            by = f"{model}, {'with' if protection else 'without'} protection"
            measured.append(
                Measured("mean change of the rating", float(np.mean(shifts)), by, len(given))
            )
            rows.append((by, *_by_kind(given, shifts), float(np.mean(shifts)), float(max(shifts))))
    kinds = tuple(dict.fromkeys(one.kind for one in given))
    table = Table(
        "How far an addition moves the rating of a bad answer (scale 1 to 5)",
        ("model", *kinds, "all", "largest"),
        tuple(rows),
    )
    return Findings(measured, (), [table])


def _shifts(found: Sequence[float | None]) -> list[float]:
    pairs = zip(found[::2], found[1::2], strict=True)
    return [after - before for before, after in pairs if before is not None and after is not None]


def _by_kind(given: Sequence[Injection], shifts: Sequence[float]) -> list[float]:
    kinds: dict[str, list[float]] = {}
    for one, shift in zip(given, shifts, strict=True):
        kinds.setdefault(one.kind, []).append(shift)
    return [float(np.mean(own)) for own in kinds.values()]


STUDY = Study(
    name="llm-judge-injections",
    paper="dialeval's own",
    cited="dialeval",
    repeats="how far 40 injected instructions move the rating of llm-judge",
    measure=measure,
    models=("smollm2-135m",),
    cost="two minutes with 135 M parameters on an idle core",
)
