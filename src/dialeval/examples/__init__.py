"""Example data that comes with the package: something to score before you have data of your own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dialeval.sample import Sample, Turn


def four_bots() -> Path:
    """Fifteen everyday conversations, each answered by an attentive, a bland, a broken and a
    parroting chatbot."""
    return Path(__file__).with_name("four-bots.jsonl")


# Minimal pairs: a good and a bad answer to the same turns; the bad one has one fault.
#
# `study behaviour` says who wrote them and what they show; `train judge` learns from one half.


@dataclass(frozen=True, slots=True)
class MinimalPair:
    """A good and a bad answer to the same turns; the last turn is by the other speaker."""

    id: str
    kind: str
    context: tuple[str, ...]
    good: str
    bad: str

    def samples(self) -> tuple[Sample, Sample]:
        """Both answers, the good one first."""
        context = tuple(
            Turn(text, "user" if (len(self.context) - place) % 2 else "system")
            for place, text in enumerate(self.context)
        )
        return (
            Sample(f"{self.id}-good", context, self.good, system="good"),
            Sample(f"{self.id}-bad", context, self.bad, system="bad"),
        )


def behaviour_pairs(split: Literal["learn", "test"]) -> list[MinimalPair]:
    """Returns the pairs that may be learned from, or those to test with."""
    text = Path(__file__).with_name("behaviour.jsonl").read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.splitlines()]
    return [
        MinimalPair(
            record["id"], record["kind"], tuple(record["context"]), record["good"], record["bad"]
        )
        for record in records
        if record["split"] == split
    ]
