"""Neutral openings: "Where do you live?" -> "Tell me, where do you live?".

They keep the meaning whatever the words are, so that there is something to ask where no word has a
synonym. In a query of several sentences a question at its end is what gets the opening; where the
end is no question, the beginning gets one for statements. They are English: what begins
with letters of another script gets none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

BEFORE_A_QUESTION = ("Tell me, ", "Could you tell me: ", "I wonder, ")
BEFORE_A_STATEMENT = ("Well, ", "So, ", "Okay, ")

_SENTENCE_END = re.compile(r"[.!?…]\s+")
_FIRST_WORD = re.compile(r"\w+(?:['’]\w+)*")
_LETTER = re.compile(r"[^\W\d_]")
_LAST_LATIN = "\u024f"
"""The letters up to it, those of Unicode's Latin Extended-B, are Latin."""


def framed(text: str, proper: Sequence[int] = ()) -> list[str]:
    """The text with each opening that it does not have; none where it has no word.

    `proper` says where words start that are names, and so keep their capital letter.
    """
    end = len(text)
    while end and not text[end - 1].isalnum():
        end -= 1
    is_question = "?" in text[end:]
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, end)] if is_question else []
    first = _FIRST_WORD.search(text, ends[-1] if ends else 0)
    if first is None or _is_foreign(text, first.start()):
        return []
    openings = BEFORE_A_QUESTION if is_question else BEFORE_A_STATEMENT
    rest = text[first.start() :]
    if first.start() not in proper and _loses_capital(first[0]):
        rest = rest[0].lower() + rest[1:]
    head, said = text[: first.start()], rest.lower()
    return [
        head + opening + rest
        for opening in openings
        if not said.startswith(opening.rstrip(" ,:").lower())
    ]


def _is_foreign(text: str, start: int) -> bool:
    """Whether the first letter from there on is not Latin."""
    letter = _LETTER.search(text, start)
    return letter is not None and letter[0] > _LAST_LATIN


def _loses_capital(word: str) -> bool:
    """Not "I", "I'm", or what is written in capital letters (NASA, AI)."""
    return re.split("['’]", word)[0] != "I" and (len(word) == 1 or not word[1:2].isupper())
