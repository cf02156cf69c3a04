"""Where a paraphrase differs from its query, word by word, for people to see at a glance."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from dialeval.words import WORD

LONGEST = 500
"""Words up to which texts are compared: time grows with the square, and nobody reads more."""

_PIECES = re.compile(rf"{WORD.pattern}|\s+|[^\w\s]")


def changed_pieces(original: str, variant: str) -> list[tuple[str, bool]]:
    """The variant in pieces that spell it, each with whether it is new; of a long text none is."""
    before = [piece for piece in _PIECES.findall(original) if not piece.isspace()]
    pieces = _PIECES.findall(variant)
    places = [place for place, piece in enumerate(pieces) if not piece.isspace()]
    after = [pieces[place] for place in places]
    if max(len(before), len(after)) > LONGEST:
        return [(variant, False)]
    new = {
        places[index]
        for what, _, _, start, end in SequenceMatcher(None, before, after, False).get_opcodes()
        if what != "equal"
        for index in range(start, end)
    }
    return [(piece, place in new) for place, piece in enumerate(pieces)]
