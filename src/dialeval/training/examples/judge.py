"""Examples for `judge` before it sees a rating: groups of a right answer and bad ones.

    corpora         the answer that was given against faults of every kind (`faults`)
    DailyDialog++   answers that people wrote as right, against ones that they wrote to look right
                    (they share words with the dialogue) and against random ones
    graded          answers that were written for this (`graded_answers/*.txt`): an excellent one, a
                    fair one and bad ones of `FAULTY` kinds, as like the good ones as possible
    inference       pairs of sentences: the second contradicts the first or does not; the first
                    is said by the same speaker or by the other (MNLI, SNLI, ...; DECODE)

A group is read in one batch, so that its answers can be compared. What the aspects of an answer
are worth is 1, 0 or unknown; which of two answers people prefer is a probability.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dialeval.errors import UsageError
from dialeval.examples import MinimalPair
from dialeval.question import ASPECTS
from dialeval.training.examples.corpora import read_written_answers
from dialeval.training.examples.faults import Exchange, Spoiled, spoil

LONGEST = 12
"""Turns before the answer that are kept."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer. `aspects` maps aspects to 1 (good) or 0 (bad); the others are unknown."""

    turns: tuple[str, ...]
    response: str
    aspects: dict[str, float]


class Preference(NamedTuple):
    """With which probability people prefer one answer of a group to another in an aspect. The
    answers are given by their places."""

    better: int
    worse: int
    probability: float
    aspect: str = "overall"


@dataclass(frozen=True, slots=True)
class Group:
    """Answers to the same turns, the right one first, and which of two people prefer. Without
    preferences the answers are not compared."""

    answers: tuple[Answered, ...]
    preferred: tuple[Preference, ...] = ()


GOOD = {aspect: 1.0 for aspect in ASPECTS if aspect != "overall"}


def exchanges_of(dialogues: Iterable[Sequence[str]]) -> list[Exchange]:
    return [
        Exchange(
            tuple(dialogue[max(0, place - LONGEST) : place]),
            dialogue[place],
            tuple(dialogue[place + 1 : place + 5]),
        )
        for dialogue in dialogues
        for place in range(1, len(dialogue))
        if dialogue[place].strip() and dialogue[place - 1].strip()
    ]


def spoiled_group(
    exchange: Exchange, others: Sequence[str], generator: np.random.Generator, bad: int
) -> Group | None:
    """Returns the right answer and `bad` bad ones."""
    spoiled = spoil(exchange, others, generator, bad)
    if not spoiled:
        return None
    right = Answered(exchange.turns, exchange.response, GOOD)
    return Group(
        (right, *(_answered(exchange.turns, one) for one in spoiled)),
        tuple(Preference(0, place, one.preferred) for place, one in enumerate(spoiled, start=1)),
    )


def _answered(turns: tuple[str, ...], spoiled: Spoiled) -> Answered:
    """Nothing is known of an aspect that the fault may have touched by accident."""
    aspects = dict.fromkeys(spoiled.bad, 0.0)
    if spoiled.bad == {"relevance"}:
        aspects |= {"fluency": 1.0, "politeness": 1.0, "novelty": 1.0}
    elif "politeness" not in spoiled.bad:
        aspects["politeness"] = 1.0
    return Answered(turns, spoiled.response, aspects)


def daily_dialog_plus(folder: Path, generator: np.random.Generator) -> Iterator[Group]:
    """Groups of one right, one adversarial and one random answer; several for each context."""
    found = [folder / name for name in ("dev.json", "test.json") if (folder / name).is_file()]
    if not found:
        raise UsageError(f"{folder}: holds no dev.json or test.json of DailyDialog++")
    for one in chain.from_iterable(map(read_written_answers, found)):
        turns, right, looks_right, random = one.turns, one.right, one.adversarial, one.random
        for place in generator.permutation(len(right))[:3].tolist():
            bad = (
                looks_right[int(generator.integers(len(looks_right)))],
                random[int(generator.integers(len(random)))],
            )
            wrong = {"relevance": 0.0, "politeness": 1.0}
            yield Group(
                (
                    Answered(turns, right[place], GOOD),
                    *(Answered(turns, text, wrong) for text in bad),
                ),
                (Preference(0, 1, 0.92), Preference(0, 2, 0.96)),
            )


FAULTY: Mapping[str, tuple[str, ...]] = {
    "contradicts-itself": ("consistency",),
    "contradicts-other": ("consistency",),
    "wrong-detail": ("consistency",),
    "off-topic": ("relevance",),
    "illogical": ("relevance",),
    "repeats-itself": ("novelty",),
    "parrot": ("novelty",),
    "dull": ("engagement",),
    "evasive": ("engagement", "relevance"),
    "rude": ("politeness",),
    "ungrammatical": ("fluency",),
    "word-salad": ("fluency",),
}
"""Kinds of bad answers, and the aspects that are bad in them."""

GOOD_TO_BAD, EXCELLENT_TO_FAIR = 0.97, 0.8
"""How surely people prefer a graded answer to a worse one, in an aspect that is bad in the worse
one, and in engagement."""


def graded_groups() -> list[Group]:
    """The answers that come with dialeval: `you:` and `me:` turns, then `+` an excellent answer,
    `~` a fair one, and `-KIND` bad ones; a blank line ends a group.

    Only the aspect that is bad in an answer is compared. If the overall judgement learned from
    them, it would look for contradictions and forget what fits: when that was tried, it agreed with
    people far less.
    """
    folder = files("dialeval.training.examples") / "graded_answers"
    found = []
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        for text in file.read_text(encoding="utf-8").split("\n\n"):
            if text.strip():
                found.append(_graded_group(text.strip().splitlines()))
    return found


def _graded_group(lines: Sequence[str]) -> Group:
    turns: list[str] = []
    good: list[Answered] = []
    bad: list[Answered] = []
    fair = None
    for line in lines:
        mark, _, text = line.partition(" ")
        if mark in ("you:", "me:"):
            turns.append(text)
        elif mark == "+":
            good.append(Answered(tuple(turns), text, GOOD))
        elif mark == "~":
            known = {a: 1.0 for a in GOOD if a != "engagement"}
            fair = Answered(tuple(turns), text, known)
        else:
            aspects = {"fluency": 1.0, "politeness": 1.0} | dict.fromkeys(FAULTY[mark[1:]], 0.0)
            bad.append(Answered(tuple(turns), text, aspects))
    answers = (*good, *([fair] if fair else []), *bad)
    preferred = [
        Preference(better, worse, GOOD_TO_BAD, aspect)
        for worse, answer in enumerate(answers)
        for aspect, value in answer.aspects.items()
        for better in range(len(answers) - len(bad))
        if value == 0.0 and aspect in answers[better].aspects
    ]
    if fair:
        place = len(good)
        preferred += [Preference(0, place, EXCELLENT_TO_FAIR, "engagement")]
    return Group(answers, tuple(preferred))


def split_by_turns(groups: Sequence[Group]) -> tuple[list[Group], list[Group]]:
    """Returns the groups to learn from, and about a tenth to hold out: always the same ones,
    however many are added. Graded answers that were rated, too, are held out of both."""

    def held_out(group: Group) -> bool:
        said = "\x1f".join(group.answers[0].turns).encode("utf-8", "replace")
        return hashlib.sha256(said).digest()[0] < 26

    return [g for g in groups if not held_out(g)], [g for g in groups if held_out(g)]


def contradicting_pairs() -> list[MinimalPair]:
    """An excellent answer and one that contradicts what was said, of the graded groups that the
    cross-encoder does not learn from."""
    return [
        MinimalPair(
            f"graded-{number}-{place}", "contradiction", right.turns, right.response, one.response
        )
        for number, group in enumerate(split_by_turns(graded_groups())[1])
        for right in group.answers[:1]
        for place, one in enumerate(group.answers[1:], start=1)
        if one.aspects.get("consistency") == 0.0
    ]


def inference_groups(
    pairs: Sequence[tuple[str, str, str]], generator: np.random.Generator
) -> Iterator[Group]:
    """Yields an example for each (premise, hypothesis, label): does what is said now contradict
    what was said before?

    The premise is the speaker's own earlier turn, with something in between, or the other's last.
    """
    for premise, hypothesis, label in pairs:
        value = 0.0 if label == "contradiction" else 1.0
        if generator.random() < 0.6:
            between = _BETWEEN[int(generator.integers(len(_BETWEEN)))]
            turns: tuple[str, ...] = (premise, between)
        else:
            turns = (premise,)
        yield Group((Answered(turns, hypothesis, {"consistency": value}),))


def decode_pairs(path: Path, generator: np.random.Generator) -> list[tuple[str, str, str]]:
    """Contradictions of one speaker, and as many pairs of sentences that do not belong together."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    said = [(row[0].strip(), row[1].strip()) for row in rows if len(row) == 3]
    other = generator.permutation(len(said))
    found = [(first, second, "contradiction") for first, second in said]
    found += [
        (first, said[place][1], "neutral") for (first, _), place in zip(said, other, strict=True)
    ]
    return found


_BETWEEN = (
    "really?", "oh, i see.", "tell me more about that.", "what about you?", "that's interesting.",
    "how come?", "and what else?", "nice. anything new?", "sounds like you", "oh wow", "okay",
    "are you sure?", "what do you like?", "why is that?", "what are you up to now?",
)  # fmt: skip
