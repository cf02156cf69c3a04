"""Samples that a metric cannot judge well, because it or its models were made for other text.

Such a sample is scored, and its score carries a note, which is counted under the table:

    in Chinese (made for English)    the language is none of those that the metric, or one of its
                                     models, declares
    mostly unknown word-pieces       more than half of them are none that an encoder has learned

The language is that of the response, or where it does not tell (too short, or plain English) that
of the dialogue as a whole. Word-pieces are counted where at least half of the characters are not
ASCII: vocabularies hold all of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dialeval.languages import NAMES, language_of
from dialeval.metric import Metric
from dialeval.question import ModelSource, TellingSource
from dialeval.sample import Sample
from dialeval.scores import Score

UNKNOWN = "mostly unknown word-pieces"


@dataclass(frozen=True)
class OutOfDepth:
    """What the metrics of a run, and their models, can read."""

    source: ModelSource
    made_for: Mapping[str, Sequence[frozenset[str]]]
    """Label of a metric -> the languages of the metric and of each model, where they are known."""

    @classmethod
    def of(cls, metrics: Sequence[Metric], source: ModelSource) -> OutOfDepth:
        def declared(metric: Metric) -> list[frozenset[str]]:
            models = [_languages(source, name) for name in metric.models().values()]
            return [languages for languages in (metric.languages, *models) if languages]

        return cls(source, {metric.label: declared(metric) for metric in metrics})

    def noted(self, metric: Metric, sample: Sample, score: Score, language: str) -> Score:
        """The score with a note on what it is worth. One that has no value says why already."""
        if score.value is None or not (note := self._note(metric, sample, language)):
            return score
        return replace(score, note=f"{score.note}, {note}" if score.note else note)

    def _note(self, metric: Metric, sample: Sample, language: str) -> str:
        if language:
            for known in self.made_for[metric.label]:
                if language not in known:
                    names = " or ".join(NAMES[one] for one in sorted(known))
                    return f"in {NAMES[language]} (made for {names})"
        text = sample.response if sample.response is not None else _dialogue(sample)
        source = self.source
        if isinstance(source, TellingSource) and mostly_not_ascii(text):
            shares = (source.unknown_pieces(name, text) for name in metric.models().values())
            if any(share > 0.5 for share in shares):
                return UNKNOWN
        return ""


def language_of_sample(sample: Sample) -> str:
    """Of the response, or of the whole dialogue where the response does not tell."""
    return language_of(sample.response or "") or language_of(_dialogue(sample))


def mostly_not_ascii(text: str) -> bool:
    if text.isascii():
        return False
    shown = "".join(text.split())
    return 2 * sum(character > "\x7f" for character in shown) >= len(shown)


def _dialogue(sample: Sample) -> str:
    return " ".join([*(turn.text for turn in sample.context), sample.response or ""])


def _languages(source: ModelSource, name: str) -> frozenset[str]:
    return source.languages(name) if isinstance(source, TellingSource) else frozenset()
