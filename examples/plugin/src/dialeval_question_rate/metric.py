"""question-rate: which share of its sentences does a response spend on asking?

    question-rate = questions / sentences

A sentence ends at `.`, `!`, `?` or an ellipsis with space behind it. It is a question if its last
mark is a `?`, exclamation marks and closing quotes aside: "Really?!" is one. Abbreviations are not
known: "Is Dr. Who on?" counts as two sentences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dialeval.metric import Metric, Part
from dialeval.options import option
from dialeval.question import Answer
from dialeval.sample import Sample
from dialeval.scores import Score

_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?…])\s+")
_WORD = re.compile(r"\w+")
_AFTER_THE_MARK = "!\"')]\u201d\u2019"


@dataclass(frozen=True)
class QuestionRate(Metric):
    """Share of the sentences in the response that are questions."""

    name = "question-rate"
    direction = "neither"  # A bot that only asks is no better than one that never does.
    range = (0, 1)
    citation = (
        "Unpublished, an example. On questions and what people think of them: See, Roller, Kiela,"
        " Weston: What makes a good conversation? NAACL 2019"
    )

    min_words: int = option(1, "sentences with fewer words are not counted", low=1)

    def parts(self) -> tuple[Part, ...]:
        return (Part("questions", "number of questions"),)

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        # The engine passes only samples of our `levels`, which by default have a response.
        assert sample.response is not None
        sentences = [
            sentence
            for sentence in _BETWEEN_SENTENCES.split(sample.response.strip())
            if len(_WORD.findall(sentence)) >= self.min_words
        ]
        if not sentences:
            return Score.missing("no sentence")
        questions = sum(is_question(sentence) for sentence in sentences)
        return Score(questions / len(sentences), {"questions": questions})


def is_question(sentence: str) -> bool:
    return sentence.rstrip(_AFTER_THE_MARK).endswith("?")
