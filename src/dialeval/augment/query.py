"""A query: what is put to a chatbot, after what was said before, and other wordings of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from dialeval.sample import Turn


@dataclass(frozen=True, slots=True)
class Paraphrase:
    """Another wording of a query, and how it was made: `verbs`, `eda swap`, `beam 1`."""

    query: str
    how: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """What a user says to a system.

    id        unique within a file
    query     the words of the user
    context   the turns before it
    facts     instructions, knowledge or persona lines that the system is to see
    variants  other wordings of the query
    """

    id: str
    query: str
    context: tuple[Turn, ...] = ()
    facts: tuple[str, ...] = ()
    variants: tuple[Paraphrase, ...] = ()

    @property
    def history(self) -> tuple[Turn, ...]:
        """All turns; the last one is the query."""
        return (*self.context, Turn(self.query, "user"))

    def to_record(self) -> dict[str, Any]:
        """A line of our own JSONL; `read_queries` reads it back unchanged."""
        record: dict[str, Any] = {
            "id": self.id,
            "context": [
                {"speaker": turn.speaker, "text": turn.text}
                if turn.speaker
                else {"text": turn.text}
                for turn in self.context
            ],
            "query": self.query,
        }
        if self.facts:
            record["facts"] = list(self.facts)
        record["variants"] = [
            {"query": variant.query, "how": variant.how} for variant in self.variants
        ]
        return record


def wording(text: str) -> str:
    """The words of a text, whatever its case and spacing: two that share it ask the same thing.

    Lower case, punctuation apart, contractions in one word, which is also how HolisticEval's
    released queries are written.
    """
    return " ".join(re.sub(r"(?<=\w)([.,!?;:\")\]]+)(?=\s|$)", r" \1", text.lower()).split())
