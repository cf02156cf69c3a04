"""Answers that people rated, as what `judge` fits its weights on: features and mean ratings.

A quality of a set teaches one aspect (`ASPECT_OF`); its principal one teaches `overall`. Mean
ratings are brought to 1 to 5 by their scale; to be learned they become ranks within their set.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dialeval.engine.answers import Answerer
from dialeval.errors import UsageError
from dialeval.examples import behaviour_pairs
from dialeval.metrics.judge import assessed
from dialeval.metrics.mme import judged_turns
from dialeval.models.quality_stack import Floats, Readers, asked, features_of
from dialeval.question import Assess
from dialeval.sample import Sample
from dialeval.text import letters_and_digits
from dialeval.training.examples.judge import contradicting_pairs

PRINCIPAL = ("overall", "appropriateness", "relevance", "coherence", "engagement")
"""The quality of a set that teaches `overall`: the first of these that it has."""

ASPECT_OF = {
    "relevance": "relevance",
    "relevant": "relevance",
    "appropriateness": "relevance",
    "semantically appropriate": "relevance",
    "maintains context": "relevance",
    "coherence": "relevance",
    "correct": "relevance",
    "grammar": "fluency",
    "fluent": "fluency",
    "fluency": "fluency",
    "natural": "fluency",
    "understandable": "fluency",
    "language_usage": "fluency",
    "engaging": "engagement",
    "engagement": "engagement",
    "interesting": "engagement",
    "specific": "engagement",
    "content": "engagement",
    "informativeness": "engagement",
}


@dataclass(frozen=True)
class Rated:
    """The rated answers of a set: features, and per aspect the mean ratings from 1 to 5 (NaN:
    nobody said)."""

    name: str
    features: Floats
    ratings: Mapping[str, Floats]
    contexts: tuple[str, ...]
    """What was said before each answer, letters alone: copies in other sets are known by it."""
    systems: tuple[str, ...]
    """Who gave each answer; empty where nobody says."""

    def without(self, contexts: Collection[str]) -> Rated:
        """Returns the answers to all other contexts."""
        return self.rows(
            [place for place, said in enumerate(self.contexts) if said not in contexts]
        )

    def rows(self, kept: Sequence[int] | npt.NDArray[np.intp]) -> Rated:
        return Rated(
            self.name,
            self.features[kept],
            {aspect: ratings[kept] for aspect, ratings in self.ratings.items()},
            tuple(self.contexts[place] for place in kept),
            tuple(self.systems[place] for place in kept),
        )

    def targets(self, aspect: str) -> tuple[Floats, Floats]:
        """Features of the answers that were rated, and their y."""
        ratings = self.ratings.get(aspect)
        known = np.zeros(0, dtype=bool) if ratings is None else ~np.isnan(ratings)
        if ratings is None or known.sum() < 3:
            return self.features[:0], np.zeros(0)
        return self.features[known], uniform_ranks(ratings[known])


def rated_features(
    name: str,
    samples: Sequence[Sample],
    readers: Readers,
    answerer: Answerer,
    quality: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Rated:
    """Asks the readers about every rated answer; `quality` is what teaches `overall`."""
    kept = [s for s in samples if s.response and s.response.strip() and s.context and s.ratings]
    if not kept:
        raise UsageError(f"{name}: holds no rated answer with turns before it")
    questions = [assessed(sample, readers.judge) for sample in kept]
    features = _features(questions, readers, answerer, progress)
    contexts = tuple(letters_and_digits(" ".join(turn.text for turn in s.context)) for s in kept)
    systems = tuple(sample.system for sample in kept)
    return Rated(name, features, mean_ratings(name, kept, quality), contexts, systems)


class RatedDialogues(NamedTuple):
    """Whole dialogues, and for each the features of its system's turns and its mean rating from 1
    to 5."""

    dialogues: Sequence[Sample]
    turns: Sequence[Floats]
    ratings: Floats


def rated_dialogues(
    name: str,
    samples: Sequence[Sample],
    readers: Readers,
    answerer: Answerer,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> RatedDialogues:
    """Asks the readers about every turn of the systems of rated dialogues."""
    asked_of = [
        (sample, [assessed(turn, readers.judge) for turn in judged_turns(sample, True)])
        for sample in samples
        if sample.response is None and sample.ratings
    ]
    kept = [(sample, questions) for sample, questions in asked_of if questions]
    if not kept:
        raise UsageError(f"{name}: holds no rated dialogue with a turn of its system")
    questions = [question for _, own in kept for question in own]
    features = _features(questions, readers, answerer, progress)
    ends = np.cumsum([len(own) for _, own in kept])[:-1]
    dialogues = [sample for sample, _ in kept]
    ratings = mean_ratings(name, dialogues, None)["overall"]
    return RatedDialogues(dialogues, np.split(features, ends), ratings)


def pair_features(readers: Readers, answerer: Answerer) -> Floats:
    """Asks the readers about pairs of a good and a bad answer that may be learned from: half of the
    behaviour pairs, and contradictions that the cross-encoder did not learn from.

    Returns (pairs, good and bad answer, features).
    """
    questions = [
        assessed(sample, readers.judge)
        for pair in (*behaviour_pairs("learn"), *contradicting_pairs())
        for sample in pair.samples()
    ]
    found = _features(questions, readers, answerer, lambda done, total: None)
    return found.reshape(len(found) // 2, 2, found.shape[1])


SHARED = (
    frozenset({"fed/all", "dstc10/fed-turn", "dstc10/fed-dial"}),
    frozenset({"usr-topical/all", "dstc10/topical-usr"}),
    frozenset({"grade-dailydialog/all", "dstc10/dailydialog-grade"}),
)
"""Rated sets with the same dialogues."""


def shares_dialogues(name: str) -> str:
    """Returns one name for all sets that share their dialogues."""
    return next((min(group) for group in SHARED if {name, f"{name}/all"} & group), name)


def joined(rated: Sequence[Rated]) -> Rated:
    aspects = {aspect for one in rated for aspect in one.ratings}
    return Rated(
        " + ".join(one.name for one in rated),
        np.concatenate([one.features for one in rated]),
        {
            aspect: np.concatenate(
                [one.ratings.get(aspect, np.full(len(one.contexts), np.nan)) for one in rated]
            )
            for aspect in aspects
        },
        tuple(context for one in rated for context in one.contexts),
        tuple(system for one in rated for system in one.systems),
    )


def uniform_ranks(ratings: Floats) -> Floats:
    """Ranks as if drawn evenly, with mean 0 and deviation 1; equal ratings stay equal."""
    order = np.unique(ratings, return_inverse=True)[1]
    counts = np.bincount(order)
    middle = np.cumsum(counts) - (counts - 1) / 2.0 - 0.5
    ranks = middle[order] / len(ratings) - 0.5
    spread = ranks.std()
    found: Floats = ranks / spread if spread else ranks
    return found


def mean_ratings(name: str, samples: Sequence[Sample], quality: str | None) -> dict[str, Floats]:
    """Per aspect the mean over its qualities, each brought to 1 to 5 by its scale."""
    values: dict[str, Floats] = {}
    for label in dict.fromkeys(label for sample in samples for label in sample.ratings):
        column = np.full(len(samples), np.nan)
        for place, sample in enumerate(samples):
            rating = sample.ratings.get(label)
            if rating is not None and rating.mean is not None:
                column[place] = rating.mean
        scale = next((s.ratings[label].scale for s in samples if label in s.ratings), None)
        low, high = scale or (float(np.nanmin(column)), float(np.nanmax(column)))
        if high > low:
            values[label] = 1.0 + 4.0 * (column - low) / (high - low)
    principal = _principal(name, list(values), quality)
    taught: dict[str, list[Floats]] = {"overall": [values[principal]]}
    for label, column in values.items():
        if aspect := ASPECT_OF.get(label.casefold()):
            taught.setdefault(aspect, []).append(column)
    return {aspect: np.mean(columns, axis=0) for aspect, columns in taught.items()}


def _principal(name: str, labels: Sequence[str], quality: str | None) -> str:
    if quality is not None:
        if quality not in labels:
            raise UsageError(
                f"{name}: there is no quality {quality!r}. There are: {', '.join(labels)}"
            )
        return quality
    by_name = {label.casefold(): label for label in labels}
    found = next((by_name[one] for one in PRINCIPAL if one in by_name), None)
    if found is None and len(labels) == 1:
        found = labels[0]
    if found is None:
        raise UsageError(
            f"{name}: which quality is the judge to learn? Say --quality NAME:"
            f" {', '.join(labels) or 'there is none with more than one value'}"
        )
    return found


def _features(
    questions: Sequence[Assess],
    readers: Readers,
    answerer: Answerer,
    progress: Callable[[int, int], None],
) -> Floats:
    wanted = [asked(q, readers) for q in questions]
    answers = answerer.answer((one for own in wanted for one in own), progress)
    return np.stack(
        [
            features_of(question, [answers[one] for one in own])
            for question, own in zip(questions, wanted, strict=True)
        ]
    )
