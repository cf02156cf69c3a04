"""irc-log: chat logs with one `<nick> text` per line and blank lines between conversations.

    <ana> my bike clicks when I pedal
    <helper> once per turn, or all the time?

Every line but the first of a conversation becomes a sample: what `nick` said is the response, nick
is the system, and the lines before are the context.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.sample import Sample, Turn

if TYPE_CHECKING:
    from dialeval.readers.source import Source

MOST_TURNS = 20
"""A log may run for years: this many lines before the response are its context."""

_LINE = re.compile(r"<(?P<nick>[^<>\s]+)> +(?P<text>\S.*)")


def recognises(source: Source) -> bool:
    first_line, _, _ = source.head.decode(errors="replace").lstrip().partition("\n")
    return _LINE.match(first_line) is not None


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    context: deque[Turn] = deque(maxlen=MOST_TURNS)
    dialogue = ""
    for number, line in source.lines(place):
        place.line = number
        if not line.strip():
            context.clear()
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            place.error("", "expected '<nick> text'")
            place.problems.skipped += 1
            continue
        nick, text = match["nick"], match["text"]
        here = f"{source.label}:{number}"
        if context:
            yield Sample(here, tuple(context), text, system=nick, dialogue=dialogue)
        else:
            dialogue = here
        context.append(Turn(text, nick))


READER = Reader(
    name="irc-log",
    summary="chat logs: '<nick> text' lines, blank lines between conversations",
    recognises=recognises,
    read=read,
)
