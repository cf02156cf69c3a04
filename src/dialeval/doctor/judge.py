"""`dialeval doctor --judge MODEL`: does a language model still judge as it did, and how firmly?

Ten answers of the bundled example are put to it with the rubric `overall`, past every cache:

    drift           how far the ratings are from those of the first time, which are kept in a card
    self-agreement  how far they move when the same is asked again at once
    wording         how far they move when the question is asked in three other ways

The first examination writes the card, into the `judges` folder of the cache directory; later ones
compare with it and leave it as it is. Delete the card to begin anew. A drift means other weights,
another library or another server behind the same name.

Replies that are drawn at random (`samples`) differ from time to time. What they differ by when they
are asked twice is then no drift.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.doctor import Finding
from dialeval.examples import four_bots
from dialeval.metrics.llm_judge import HARDLY, LlmJudge
from dialeval.models.chat_judge import Servers
from dialeval.models.source import Models
from dialeval.question import Choose, Chosen, Model
from dialeval.readers import load
from dialeval.sample import Sample
from dialeval.storage import cache_directory, write_json
from dialeval.strict_json import read_object

ITEMS = 10
MOVED = 0.05
"""Points of the scale from 1 to 5: more than rounding, on the way to another order of answers."""

PARAPHRASES = (
    "What is your overall opinion of the bot's last answer?"
    " Give it a rating from 1 (very bad) to 5 (very good).",
    "On a scale from 1 (very bad) to 5 (very good), how would you rate the last thing that the bot"
    " said?",
    "Judge the bot's last answer as a user would: 1 is very bad, 5 is very good.",
)


@dataclass(frozen=True)
class JudgeCard:
    """What a language model said when it was examined."""

    model: str
    fingerprint: str
    rubric: str
    ratings: tuple[float, ...]
    self_difference: float
    """Mean absolute difference to the same questions asked again."""
    wording_difference: float
    """Mean absolute difference to the paraphrases."""
    wording_correlation: float | None
    """Mean correlation of the ratings with those by the paraphrases; none without spread."""
    mass: float
    """Mean probability of a rating at all."""
    noise: float = 0.0
    """The largest difference between ratings by replies that were drawn at random; else 0."""

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def card_path(model: str, fingerprint: str, samples: int = 0) -> Path:
    drawn = f" {samples}" if samples else ""
    name = hashlib.sha256(f"{model} {fingerprint}{drawn}".encode()).hexdigest()[:16]
    return cache_directory() / "judges" / f"{name}.json"


def examine_judge(
    model: str,
    servers: Servers | None = None,
    load_model: Callable[[int], Model] | None = None,
    samples: int = 0,
) -> list[Finding]:
    """Asks ten answers again, compares with the card, and says how firm the ratings are.

    `load_model` gives, for the first, second, ... time, a model that remembers nothing; by default
    the named one. `samples` replies are counted for each answer; 0: its probabilities are read.
    """
    fingerprint = Models().fingerprint(model)
    with tempfile.TemporaryDirectory() as forgotten:

        def fresh(time: int) -> Model:
            """Each time with responses of its own, so that nothing comes from an earlier one."""
            record = Path(forgotten) / f"{time}.sqlite"
            return Models(servers=replace(servers or Servers(), record=record)).load(model)

        ask = load_model or fresh
        first = _ask(ask(0), _questions(model, samples))
        again = _ask(ask(1), _questions(model, samples))
        others = [
            _ask(ask(2 + number), _questions(model, samples, wording))
            for number, wording in enumerate(PARAPHRASES)
        ]
    ratings = _ratings(first)
    twice = np.abs(_ratings(again) - ratings)
    differences = [np.abs(_ratings(other) - ratings) for other in others]
    card = JudgeCard(
        model,
        fingerprint,
        LlmJudge(model=model).words.identity,
        tuple(ratings.tolist()),
        float(twice.mean()),
        float(np.mean(differences)),
        _correlation(ratings, [_ratings(other) for other in others]),
        float(np.mean([one.mass for one in first])),
        float(twice.max()) if samples else 0.0,
    )
    path = card_path(model, fingerprint, samples)
    known = read_object(path) if path.is_file() else None
    if known is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, json.loads(json.dumps(card.to_record())))
    return _findings(card, known, path)


def _samples() -> list[Sample]:
    return [sample for sample in load(str(four_bots())) if sample.response][:ITEMS]


def _questions(model: str, samples: int, wording: str = "") -> list[Choose]:
    metric = LlmJudge(model=model, samples=samples)
    asked = (question for sample in _samples() for question in metric.ask(sample))
    found = [question for question in asked if isinstance(question, Choose)]
    form = "\nReply with one digit from 1 to 5 and nothing else."
    return [replace(one, wanted=wording + form) for one in found] if wording else found


def _ask(model: Model, questions: Sequence[Choose]) -> list[Chosen]:
    answers = dict(model.answer(questions))
    return [Chosen.read(answers[place]) for place in range(len(questions))]


def _ratings(found: Sequence[Chosen]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A model that gives no rating at all is taken to be undecided."""
    return np.array([one.expected((1, 2, 3, 4, 5)) if one.mass else 3.0 for one in found])


def _correlation(
    ratings: np.ndarray[Any, Any], others: Sequence[np.ndarray[Any, Any]]
) -> float | None:
    if not ratings.std() or not all(other.std() for other in others):
        return None
    return float(np.mean([np.corrcoef(ratings, other)[0, 1] for other in others]))


def _findings(card: JudgeCard, known: dict[str, Any] | None, path: Path) -> list[Finding]:
    firm = "the same" if card.self_difference < MOVED else "not the same"
    is_firm = card.self_difference < MOVED or card.noise > 0.0
    drawn = ", as replies are drawn at random" if card.noise else ""
    correlation = (
        "no spread" if card.wording_correlation is None else f"r = {card.wording_correlation:.2f}"
    )
    found = [
        Finding(
            "self-agreement",
            "ok" if is_firm else "failed",
            f"asked twice: {firm} (mean difference {card.self_difference:.4f}){drawn}",
        ),
        Finding(
            "wording",
            "ok",
            f"three paraphrases: mean difference {card.wording_difference:.2f}, {correlation}",
        ),
        Finding(
            "mass",
            "ok" if card.mass >= HARDLY else "failed",
            f"replies with a rating: {card.mass:.0%}",
        ),
    ]
    if known is None:
        return [Finding("drift", "absent", f"first examination: written to {path}"), *found]
    before = known.get("ratings")
    if not isinstance(before, list) or len(before) != len(card.ratings):
        return [Finding("drift", "failed", f"{path} is damaged: delete it"), *found]
    if known.get("rubric") != card.rubric:
        return [Finding("drift", "failed", f"{path} is of another rubric: delete it"), *found]
    drift = float(np.abs(np.array(before, dtype=float) - np.array(card.ratings)).max())
    said = f"largest difference since the card: {drift:.4f}"
    return [Finding("drift", "ok" if drift < MOVED + card.noise else "failed", said), *found]
