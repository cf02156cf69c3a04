"""What to ask. Two protocols of HolisticEval (Pang et al., ACL 2020), sections 3.3 and 3.4.

diversity    the query, and each variant of it in its place: same history, other words. Do the
             answers vary?
consistency  the query, and when it is answered, a variant as the next turn of the same dialogue:
             history, query, answer, paraphrase. Does the second answer contradict the first?

Both start with the query itself, which is asked once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dialeval.augment.query import Paraphrase, Query
from dialeval.sample import Turn
from dialeval.systems.system import INSTRUCTIONS, with_speakers

Protocol = Literal["diversity", "consistency", "both"]
ORIGINAL = "original"


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to the system. `what`: `original`, `variant 2` or `again 1` (from 1)."""

    query: str
    what: str
    history: tuple[Turn, ...]

    @property
    def key(self) -> tuple[str, str]:
        return self.query, self.what


@dataclass(frozen=True)
class Plan:
    """What is asked of each query; `paraphrases` variants of it are put again."""

    protocol: Protocol = "both"
    paraphrases: int = 1

    def opening(self, query: Query) -> list[Ask]:
        """What can be asked at once."""
        asks = [Ask(query.id, ORIGINAL, _history(query, query.query))]
        if self.protocol != "consistency":
            asks += [
                Ask(query.id, variant_name(number), _history(query, variant.query))
                for number, variant in enumerate(query.variants, 1)
            ]
        return asks

    def following(self, query: Query, answer: str) -> list[Ask]:
        """What can be asked when the query itself has been answered."""
        said = (*_history(query, query.query), Turn(answer, "system"))
        return [
            Ask(query.id, again_name(number), (*said, Turn(variant.query, "user")))
            for number, variant in enumerate(self.put_again(query), 1)
        ]

    def put_again(self, query: Query) -> Sequence[Paraphrase]:
        return () if self.protocol == "diversity" else query.variants[: self.paraphrases]

    def names(self, query: Query) -> list[str]:
        """The `what` of everything that is asked of this query, in order."""
        variants = 0 if self.protocol == "consistency" else len(query.variants)
        return [
            ORIGINAL,
            *(variant_name(number) for number in range(1, variants + 1)),
            *(again_name(number) for number in range(1, len(self.put_again(query)) + 1)),
        ]


def variant_name(number: int) -> str:
    return f"variant {number}"


def again_name(number: int) -> str:
    return f"again {number}"


def dialogue(query: Query) -> tuple[Turn, ...]:
    """What was said, up to and with the query; every speaker is `user` or `system`."""
    return with_speakers(query.history)


def _history(query: Query, words: str) -> tuple[Turn, ...]:
    told = (Turn("\n".join(query.facts), INSTRUCTIONS),) if query.facts else ()
    return (*told, *dialogue(query)[:-1], Turn(words, "user"))
