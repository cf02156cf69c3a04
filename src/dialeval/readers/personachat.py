"""PersonaChat as ConvAI2 has it: valid_self_original_no_cands.txt, one exchange per line.

    1 your persona: i read twenty books a year.
    2 your persona: i only eat kosher.
    3 hello what are doing today ?<TAB>i am good , i just got off work .
    1 your persona: ...                                  <- the next dialogue

The last answer is the response that can be judged, everything before it is its context, and the
persona is its facts, whoever's it is. Nobody rated anything. Further columns, such as candidates,
are not read. Ids are `valid_self_original_no_cands-0001`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.source import Source
from dialeval.sample import Sample, Turn

_PERSONA = re.compile(r"(your|partner's) persona: (.*)")
_LINE = re.compile(r"(\d{1,6}) (.*)", re.DOTALL)


@dataclass(slots=True)
class _Dialogue:
    line: int
    facts: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)


def recognises(source: Source) -> bool:
    return re.match(r"1 (your|partner's) persona: ", source.text_head) is not None


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    for number, dialogue in enumerate(_dialogues(source, place), 1):
        place.line = dialogue.line
        if not dialogue.turns:
            place.error("", "a persona without a dialogue")
            place.problems.skipped += 1
            continue
        ident = f"{source.label}-{number:04d}"
        *context, last = dialogue.turns
        yield Sample(
            id=ident,
            context=tuple(context),
            response=last.text,
            facts=tuple(dialogue.facts),
            dialogue=ident,
        )


def _dialogues(source: Source, place: Place) -> Iterator[_Dialogue]:
    current: _Dialogue | None = None
    for number, line in source.lines(place):
        place.line = number
        if not line.strip():
            continue
        if "\0" in line:
            place.warning("", "holds NUL: replaced by U+FFFD")
            line = line.replace("\0", "\ufffd")
        numbered = _LINE.fullmatch(line)
        if numbered is None or (current is None and numbered[1] != "1"):
            place.error("", "expected a number and a text; the first of a dialogue is 1")
            place.problems.skipped += 1
            continue
        if numbered[1] == "1" or current is None:
            if current is not None:
                yield current
            current = _Dialogue(number)
        if persona := _PERSONA.fullmatch(numbered[2]):
            current.facts.append(persona[2])
        else:
            asked, _, answered = numbered[2].partition("\t")
            current.turns.append(Turn(asked.strip(), "user"))
            if answer := answered.partition("\t")[0].strip():
                current.turns.append(Turn(answer, "system"))
    if current is not None:
        yield current


READER = Reader("personachat", "PersonaChat: exchanges under a persona", recognises, read)
