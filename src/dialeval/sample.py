"""Samples: the dialogues and responses that are judged, and their parts.

A sample is one thing that a metric can score. With a `response` it is a single answer in its
context; without one the whole dialogue is judged and `context` holds all of its turns. The values
are frozen and hold plain Python types, so a sample can be hashed, compared, sent to another
process and written as one line of JSON.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Level = Literal["turn", "dialogue"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. `speaker` is `user`, `system`, a name, or empty where nobody knows."""

    text: str
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Rating:
    """The ratings of one quality of one sample: one number per rater, None for no rating.

    `raters` names the people in the order of `values`; it is empty where the data does not.
    `scale` is the lowest and highest rating that could be given, None where unknown. `comments` is
    what the people wrote beside their numbers, in the same order; it is empty where nobody did.
    """

    values: tuple[float | None, ...]
    scale: tuple[float, float] | None = None
    raters: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()

    @property
    def given(self) -> tuple[float, ...]:
        """The ratings that were given, without the missing ones."""
        return tuple(value for value in self.values if value is not None)

    @property
    def mean(self) -> float | None:
        """Mean over the raters who answered; None if nobody did."""
        given = self.given
        return math.fsum(given) / len(given) if given else None


Ratings = Mapping[str, Rating]
"""Quality, such as `Overall` -> its ratings."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The last query in other words, and what the probed system answered to it."""

    query: str
    response: str


@dataclass(frozen=True, slots=True)
class Sample:
    """One thing to judge.

    id          unique within a file; scores are joined to ratings by it
    context     the turns before the response (all turns where there is no response)
    response    what the system said; None: the dialogue as a whole is judged
    references  good answers to the same context, written by people
    facts       knowledge or persona lines that the system could see
    system      the name of the chatbot that spoke
    dialogue    the conversation this sample was cut from: turns of one dialogue share it
    item        what was answered: samples of rival systems with the same item are compared in pairs
    ratings     what people said
    variants    the query in other words, with the answers (see `dialeval probe`)
    """

    id: str
    context: tuple[Turn, ...] = ()
    response: str | None = None
    references: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    system: str = ""
    dialogue: str = ""
    item: str = ""
    ratings: Ratings = field(default_factory=dict, hash=False)
    variants: tuple[Variant, ...] = ()

    @property
    def level(self) -> Level:
        return "dialogue" if self.response is None else "turn"

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The whole conversation: the context, and the response where there is one."""
        if self.response is None:
            return self.context
        return (*self.context, Turn(self.response, "system"))

    def to_record(self) -> dict[str, Any]:
        """Returns the sample as JSON-ready values, empty fields left out: a line of our own
        JSONL."""
        record: dict[str, Any] = {"id": self.id}
        for name in ("dialogue", "item", "system"):
            if value := getattr(self, name):
                record[name] = value
        record["context"] = [
            {"speaker": turn.speaker, "text": turn.text} if turn.speaker else {"text": turn.text}
            for turn in self.context
        ]
        record["response"] = self.response
        for name in ("references", "facts"):
            if value := getattr(self, name):
                record[name] = list(value)
        if self.variants:
            record["variants"] = [
                {"query": variant.query, "response": variant.response} for variant in self.variants
            ]
        if self.ratings:
            record["ratings"] = {
                quality: _rating_record(rating) for quality, rating in self.ratings.items()
            }
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Sample:
        """Reads what `to_record` wrote, for records that dialeval wrote itself.

        It trusts its input; files of unknown origin go through `dialeval.load`.
        """
        return cls(
            id=record["id"],
            context=tuple(Turn(t["text"], t.get("speaker") or "") for t in record["context"]),
            response=record["response"],
            references=tuple(record.get("references") or ()),
            facts=tuple(record.get("facts") or ()),
            system=record.get("system") or "",
            dialogue=record.get("dialogue") or "",
            item=record.get("item") or "",
            ratings={q: _rating(r) for q, r in (record.get("ratings") or {}).items()},
            variants=tuple(
                Variant(v["query"], v["response"]) for v in record.get("variants") or ()
            ),
        )

    @classmethod
    def from_doubtful_record(cls, record: Any) -> Sample:
        """Reads a record that may have been damaged; raises ValueError."""
        try:
            found = cls.from_record(record)
            texts = [found.id, found.system, found.dialogue, found.item, found.response or ""]
            texts += [*found.references, *found.facts]
            texts += [part for turn in found.context for part in (turn.text, turn.speaker)]
            texts += [part for one in found.variants for part in (one.query, one.response)]
            numbers = [value for rating in found.ratings.values() for value in rating.values]
            texts += [text for rating in found.ratings.values() for text in rating.comments]
        except (KeyError, TypeError, AttributeError, LookupError) as error:
            raise ValueError(f"not a sample: {error}") from error
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("not a sample: a text is something else")
        if not all(isinstance(one, int | float | None) for one in numbers):
            raise ValueError("not a sample: a rating is no number")
        return found

    def digest(self) -> bytes:
        """sha256 of everything in the sample: equal digests, equal samples."""
        record = json.dumps(self.to_record(), ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(record.encode("utf-8", "surrogatepass")).digest()


def _rating_record(rating: Rating) -> dict[str, Any]:
    record: dict[str, Any] = {"values": list(rating.values)}
    if rating.scale is not None:
        record["scale"] = list(rating.scale)
    if rating.raters:
        record["raters"] = list(rating.raters)
    if rating.comments:
        record["comments"] = list(rating.comments)
    return record


def _rating(record: Mapping[str, Any]) -> Rating:
    scale = record.get("scale")
    return Rating(
        values=tuple(record["values"]),
        scale=(scale[0], scale[1]) if scale else None,
        raters=tuple(record.get("raters") or ()),
        comments=tuple(record.get("comments") or ()),
    )
