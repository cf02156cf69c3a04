"""DailyDialog (Li et al. 2017): dialogues_train.txt and others, one dialogue per line.

    Hey man , you wanna buy some weed ? __eou__ Some what ? __eou__ Weed ! You know ? __eou__

The last turn is the response that can be judged, the turns before it are its context; people took
turns, so the one before the response is the user's. Nobody rated anything. Ids are
`dialogues_train-00001`: file and line.
"""

from __future__ import annotations

from collections.abc import Iterator

from dialeval.readers import fields
from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.source import Source
from dialeval.sample import Sample, Turn

END = "__eou__"


def recognises(source: Source) -> bool:
    text = source.text_head.lstrip()
    return not text.startswith(("{", "[")) and text.partition("\n")[0].rstrip().endswith(END)


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    for number, line in source.lines(place):
        place.line = number
        if "\0" in line:
            place.warning("", "holds NUL: replaced by U+FFFD")
            line = line.replace("\0", "\ufffd")
        turns = [turn for text in line.split(END) if (turn := text.strip())]
        if not turns:
            if line.strip():
                place.error("", f"no turns: expected texts that end in {END}")
                place.problems.skipped += 1
            continue
        ident = f"{source.label}-{number:05d}"
        yield Sample(
            id=ident,
            context=fields.alternating([Turn(text) for text in turns[:-1]]),
            response=turns[-1],
            dialogue=ident,
        )


READER = Reader("dailydialog", "DailyDialog: dialogues_NAME.txt, one per line", recognises, read)
