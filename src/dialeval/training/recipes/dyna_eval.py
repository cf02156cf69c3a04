"""`dialeval train dyna-eval`: dialogues of people, against the same ones out of joint.

(Zhang et al., ACL 2021) Every dialogue is right as it was held. Wrong are

    replaced  the dialogue with one utterance of another one in the place of its own
    shuffled  the dialogue with all that one speaker said in another order; the other's stays

In every epoch each dialogue of four turns or more is read once as it is, and once in either wrong
form, drawn again; both classes of a batch have the same weight. The head tells them apart by
cross-entropy. The authors rank the right one above the wrong one by a margin, train the sentence
encoder as well, and have a judge for each wrong form. Only the dialogues that are drawn are
embedded. A long dialogue is read from its end. `flow-score` learns from dialogues, too, and is
tested with the same wrong ones (`DialogueHead`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.errors import UsageError
from dialeval.options import option
from dialeval.training.recipe import held_out_option
from dialeval.training.recipes.sentence_head import HeadExamples, SentenceHead

if TYPE_CHECKING:
    import numpy as np

    from dialeval.training.examples.corpora import Dialogue
    from dialeval.training.examples.pair_corpus import Example

FEWEST = 4
"""Turns of a dialogue: of fewer, one speaker has a single one."""


@dataclass(frozen=True, kw_only=True)
class DialogueHead(SentenceHead):
    """Teach a head on whole dialogues; held-out ones are put out of joint to test it."""

    turns: int = option(30, "Read at most this many turns before the last one.", low=3)
    dialogues: int = option(6_000, "Learn from at most this many dialogues; 0: from all.", low=0)
    held_out: int = held_out_option(300, "dialogues each")

    @abstractmethod
    def of_epoch(self, dialogues: Sequence[Dialogue], epoch: int) -> list[Example]:
        """Returns what is learned from in an epoch."""

    def examples_of(self, data: Sequence[Path]) -> HeadExamples:
        import numpy as np

        from dialeval.training.examples.corpora import load_unrated
        from dialeval.training.examples.pair_corpus import ExampleSets

        corpus, left_out = load_unrated(data)
        most_read = self.turns + 1
        train, validation, test = (
            long_dialogues(corpus.name, own, most_read, most, seed)
            for own, most, seed in (
                (corpus.train, self.dialogues, self.seed),
                (corpus.validation, self.held_out, 0),
                (corpus.test, self.held_out, 0),
            )
        )
        held_out = dialogues_and_wrong_ones(test, np.random.default_rng(0))
        return HeadExamples(
            ExampleSets(
                lambda epoch: self.of_epoch(train, epoch),
                dialogues_and_wrong_ones(validation, np.random.default_rng(0)),
                corpus.digest(),
                {"corpus": corpus.name, "sha256": corpus.digest(), **left_out.facts()}
                | {"dialogues to learn from": len(train)},
                measured={
                    "test, replaced utterances": [
                        one for n, one in enumerate(held_out) if n % 3 < 2
                    ],
                    "test, shuffled speakers": [
                        one for n, one in enumerate(held_out) if n % 3 != 1
                    ],
                },
            )
        )


@dataclass(frozen=True, kw_only=True)
class DynaEval(DialogueHead):
    """Teach DynaEval to tell real dialogues from copies with replaced or shuffled turns."""

    name = "dyna-eval"
    metric = "dyna-eval"
    head = "graph"
    balanced = True

    units: tuple[int, ...] = field(default=(48,))
    """Width of one direction of the LSTM."""

    @property
    def about(self) -> str:
        return (
            "Does a dialogue go as dialogues of people do? DynaEval: a graph of the turns over"
            " frozen sentence vectors that learned dialogues against replaced and shuffled ones."
        )

    def of_epoch(self, dialogues: Sequence[Dialogue], epoch: int) -> list[Example]:
        import numpy as np

        return dialogues_and_wrong_ones(dialogues, np.random.default_rng([self.seed, 2 + epoch]))


def long_dialogues(
    corpus: str, dialogues: Sequence[Dialogue], most_read: int, most: int, seed: int
) -> list[Dialogue]:
    """Draws dialogues that are long enough; 0: all. What is cut off their beginning is not read in
    another dialogue either."""
    import numpy as np

    from dialeval.training.examples.pair_corpus import drawn

    long = [dialogue[-most_read:] for dialogue in dialogues if len(dialogue) >= FEWEST]
    if len(long) < 2:
        raise UsageError(
            f"{corpus}: it takes two dialogues of {FEWEST} turns or more in each split"
            " to put an utterance of one into the other. Take more dialogues."
        )
    return drawn(long, most or None, np.random.default_rng([seed, 1]))


def replace_one(
    dialogue: Dialogue, other: Dialogue, generator: np.random.Generator
) -> tuple[str, ...]:
    """Returns the dialogue with one utterance of the other one in the place of one of its own."""
    turns = list(dialogue)
    turns[int(generator.integers(len(turns)))] = other[int(generator.integers(len(other)))]
    return tuple(turns)


def shuffle_speaker(dialogue: Dialogue, generator: np.random.Generator) -> tuple[str, ...]:
    """Returns the dialogue with what one speaker said in another order; two speakers take turns."""
    turns = list(dialogue)
    first = int(generator.integers(2))
    own = turns[first::2]
    turns[first::2] = [own[place] for place in generator.permutation(len(own)).tolist()]
    return tuple(turns)


TRIES = 10


def dialogues_and_wrong_ones(
    dialogues: Sequence[Dialogue], generator: np.random.Generator
) -> list[Example]:
    """Returns each dialogue as it is, replaced and shuffled."""
    from dialeval.training.examples.pair_corpus import Example

    found = []
    for place, dialogue in enumerate(dialogues):
        # Any dialogue but this one.
        step = 1 + int(generator.integers(len(dialogues) - 1))
        other = dialogues[(place + step) % len(dialogues)]
        replaced = shuffled = dialogue
        for _ in range(TRIES):
            if replaced == dialogue:
                replaced = replace_one(dialogue, other, generator)
            if shuffled == dialogue:
                shuffled = shuffle_speaker(dialogue, generator)
        # Where all that is said is the same, another order is no wrong one.
        found += [
            Example(turns[:-1], turns[-1], float(turns == dialogue))
            for turns in (dialogue, replaced, shuffled)
        ]
    return found
