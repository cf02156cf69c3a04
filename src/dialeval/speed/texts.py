"""What is measured on: the conversations that come with the package, as many as wanted.

Every response is paired with texts of other conversations, so that pairs differ in length and
overlap as real ones do, and no pair comes twice before all have come once. Copies of a dialogue
are told apart by a number in their first turn: nothing may be answered from memory.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, islice, product

from dialeval.sample import Sample, Turn

Pair = tuple[str, str]
"""A response and its reference."""


def example_samples() -> list[Sample]:
    from dialeval.examples import three_bots
    from dialeval.readers import load

    return list(load(str(three_bots())))


def example_pairs(count: int) -> list[Pair]:
    samples = example_samples()
    responses = [sample.response or "" for sample in samples]
    others = list(
        dict.fromkeys(
            [reference for sample in samples for reference in sample.references] + responses
        )
    )
    # Diagonals of the square of all pairs: neighbours share no text.
    pairs = sorted(
        product(range(len(responses)), range(len(others))),
        key=lambda at: (at[1] - at[0]) % len(others),
    )
    return [(responses[i], others[j]) for i, j in islice(cycle(pairs), count)]


def example_dialogues(count: int) -> list[Sample]:
    """Dialogues to be judged, all different."""
    samples = example_samples()
    return [
        numbered(sample, number)
        for number, sample in enumerate(islice(cycle(samples), count), start=1)
    ]


def numbered(sample: Sample, number: int) -> Sample:
    first, *rest = sample.context
    return replace(
        sample,
        id=f"{number}/{sample.id}",
        context=(Turn(f"{number}. {first.text}", first.speaker), *rest),
    )


def as_samples(pairs: list[Pair]) -> list[Sample]:
    """Pairs as something that metrics with references can score."""
    context = (Turn("", "user"),)
    return [
        Sample(id=str(number), context=context, response=response, references=(reference,))
        for number, (response, reference) in enumerate(pairs)
    ]
