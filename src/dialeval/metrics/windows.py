"""Long answers, read in windows, so that a good beginning does not hide a bad end.

A short answer is its only window. A longer one is cut where sentences and lines end, into windows
of at most 45 words, and each is judged by itself:

    s = 2/3 mean of s_i + 1/3 smallest s_i               s_i: what a judge says of window i

`judge` calls an answer of more than 45 words long; for the other metrics it has more than 100, so
that they are what their papers compared on answers as people rated them. (With 45 the agreement of
`mme-crs` on left-out sets was .322 instead of .324; the number was chosen after that.) At most 12
windows are read: of a longer answer the first and the last ones, and others at even distances. The
note of the score has the number of words that were not read.

A language model reads the whole answer in one pass, so that windows are groups of its tokens. It
finds almost any text likely that goes on for long: `banana banana banana` most of all. So no window
counts as likelier than the mean of those before it,

    l'_1 = l_1,  l'_i = min(l_i, mean of l'_1 ... l'_i-1)      l_i: mean log-probability in window i

and the rule above is applied to l'. What is added at the end can lower that number and never raise
it.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from dialeval.question import Answer, Judgement, TokenLogProbs
from dialeval.sample import Sample
from dialeval.scores import Score

WINDOW = 45
"""Words that are judged at once. The judge's reader was trained on answers that are hardly longer,
and so were those of `bert-ruber` and `pone`."""

LONG = 100
"""An answer of more words is long for all metrics but `judge`."""

MOST_WINDOWS = 12

Item = TypeVar("Item")
Span = tuple[int, int]


@dataclass(frozen=True)
class Windows:
    """The pieces of an answer that are judged, and the number of words in those that are not."""

    read: tuple[str, ...]
    unread: int = 0


def windows(answer: str, words: int = WINDOW, whole: int = WINDOW) -> Windows:
    """Returns the windows of an answer, each of at most `words` words; an answer of at most `whole`
    words is its only one."""
    if len(answer.split()) <= whole:
        return Windows((answer,))
    pieces = _pieces(answer, words)
    last = len(pieces) - 1
    count = min(len(pieces), MOST_WINDOWS)
    places = {round(number * last / (count - 1)) for number in range(count)} if last else {0}
    return Windows(
        tuple(" ".join(answer[a:b] for a, b in pieces[place]) for place in sorted(places)),
        sum(len(piece) for place, piece in enumerate(pieces) if place not in places),
    )


def _pieces(answer: str, words: int) -> list[list[Span]]:
    """Returns all windows of a long answer, as the places of their words."""
    found = [match.span() for match in re.finditer(r"\S+", answer)]
    sentences: list[list[Span]] = []
    end = 0
    for start, stop in found:
        between = answer[end:start]
        if not sentences or answer[end - 1 : end] in {".", "!", "?"} or "\n" in between:
            sentences.append([])
        sentences[-1].append((start, stop))
        end = stop
    pieces: list[list[Span]] = [[]]
    for sentence in sentences:
        for first in range(0, len(sentence), words):
            part = sentence[first : first + words]
            if len(pieces[-1]) + len(part) > words:
                pieces.append([])
            pieces[-1] += part
    return pieces


def windowed(turn: Sample, words: int = WINDOW, whole: int = WINDOW) -> list[Sample]:
    """Returns a sample for each window of the response that is read."""
    found = windows(turn.response or "", words, whole).read
    return [replace(turn, response=window) for window in found]


def by_answer(cut: Sequence[Windows], found: Iterable[Item]) -> list[list[Item]]:
    """Returns what was found for the windows of several answers, answer by answer."""
    rest = iter(found)
    return [list(islice(rest, len(one.read))) for one in cut]


def of_windows(values: Sequence[float]) -> float:
    """Returns the value of an answer by those of its windows: two thirds the mean, one third the
    worst."""
    if len(values) == 1:
        return values[0]
    return (2.0 * math.fsum(values) / len(values) + min(values)) / 3.0


def unread(cut: Sequence[Windows]) -> str:
    """Returns the note that says how much of long answers was not read."""
    words = sum(one.unread for one in cut)
    return f"a part of a long answer was not read ({words} words)" if words else ""


def judged(cut: Sequence[Windows], answers: Sequence[Answer]) -> Score:
    """Returns the mean over answers, each by its windows, from the answers to `Judge`; the note
    says what was not read."""
    own = by_answer(cut, map(Judgement.read, answers))
    values = [of_windows([one.value for one in found]) for found in own]

    def tokens(in_windows: bool) -> int:
        limits = [one.response for found in own if (len(found) > 1) == in_windows for one in found]
        return max(limits, default=0)

    turns = max(one.turns for found in own for one in found)
    notes = (
        Judgement(0.0, turns, tokens(in_windows=False)).note,
        f"windows truncated to {limit} tokens" if (limit := tokens(in_windows=True)) else "",
        unread(cut),
    )
    return Score(math.fsum(values) / len(values), note=", ".join(filter(None, notes)))


def mean_log_prob(answer: str, tokens: TokenLogProbs) -> float:
    """Returns the mean log-probability of the tokens of an answer, of a long one by its windows."""
    if len(answer.split()) <= LONG:
        return math.fsum(tokens.log_probs) / len(tokens)
    starts = [piece[0][0] for piece in _pieces(answer, WINDOW)]
    groups: list[list[float]] = [[] for _ in starts]
    for (_, end), log_prob in zip(tokens.spans, tokens.log_probs, strict=True):
        # A token begins with the space before its word, so that its end says where it is.
        groups[max(0, bisect_right(starts, end - 1) - 1)].append(log_prob)
    counted: list[float] = []
    for group in filter(None, groups):
        mean = math.fsum(group) / len(group)
        counted.append(min(mean, math.fsum(counted) / len(counted)) if counted else mean)
    return of_windows(counted)
