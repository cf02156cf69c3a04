"""Word salad: a response that nobody can mistake for a good one, for attention checks.

Words are drawn from responses all over the data and put in random order: neither fluent nor about
anything, yet of the usual length and vocabulary, so that it does not stand out at a glance. A
shuffled response alone may still make sense ("yes I do"), and the response of another dialogue is
fluent and may even fit.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dialeval.sample import Sample, Turn

SHORTEST, LONGEST = 6, 25
"""Words of a salad: fewer may happen to make sense, more are a chore to read."""
LONG_WORD = 20
"""A longer word is a sentence in a script without spaces, or an address: it is cut to pieces."""
PIECE = 2


def vocabulary(samples: Sequence[Sample]) -> list[str]:
    """The words of all responses (of whole dialogues: of all turns), as often as they occur."""
    words = [word for sample in samples for text in _texts(sample) for word in _words(text)]
    if len(set(words)) < SHORTEST:
        # The data say too little to make nonsense of: nonsense from elsewhere then.
        words += ["seven", "quickly", "of", "beneath", "lamp", "who", "purple", "therefore"]
    return words


def salad_of(sample: Sample, words: Sequence[str], generator: random.Random) -> Sample:
    """The sample with nonsense for its response; of a whole dialogue, for every other turn."""

    def mix(text: str) -> str:
        wanted = min(LONGEST, max(SHORTEST, len(list(_words(text)))))
        return " ".join(generator.choice(words) for _ in range(wanted))

    if sample.response is not None:
        return replace(sample, response=mix(sample.response))
    turns = tuple(
        Turn(mix(turn.text), turn.speaker) if index % 2 or len(sample.context) == 1 else turn
        for index, turn in enumerate(sample.context)
    )
    return replace(sample, context=turns)


def _texts(sample: Sample) -> Iterator[str]:
    if sample.response is not None:
        yield sample.response
    else:
        yield from (turn.text for turn in sample.context)


def _words(text: str) -> Iterator[str]:
    for word in text.split():
        if len(word) <= LONG_WORD:
            yield word
        else:
            yield from (word[at : at + PIECE] for at in range(0, len(word), PIECE))
